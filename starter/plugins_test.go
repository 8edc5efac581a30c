package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/plugin"
	"podstarter/sandbox"
	"podstarter/starter/settings"
)

// pluginActivation has a sandbox that belongs to a payload user.
func pluginActivation(t *testing.T, uid int) *activation {
	t.Helper()
	dir, err := os.MkdirTemp("", "execute")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	owner := sandbox.Self()
	if os.Getuid() == 0 {
		owner = sandbox.Owner{UID: uid, GID: uid}
	}
	box, err := sandbox.Create(t.Context(), sandbox.Options{Execute: dir, PID: os.Getpid(), Condor: sandbox.Self(), Payload: owner})
	if err != nil {
		t.Fatal(err)
	}
	a := &activation{sandbox: box, name: t.Name(), log: slog.New(slog.DiscardHandler), ad: classads.NewAd(), machine: classads.NewAd()}
	a.useKnobs(config.FromMap(nil))
	return a
}

// TestPluginHasNoRights is who a plugin is: the job's user in no group of anybody's,
// without a way to more, and with nothing of the starter's but three descriptors.
func TestPluginHasNoRights(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	a := pluginActivation(t, 4712)
	path := siteProgram(t, `grep -e ^Uid -e ^Gid -e ^Groups -e ^NoNewPrivs -e ^CapInh -e ^CapPrm -e ^CapEff -e ^CapAmb -e ^SigBlk -e ^SigIgn /proc/self/status | tr -s '\t ' ' '
umask; pwd; readlink /proc/$$/fd/0; ls /proc/self/fd | tr '\n' ' '; echo "$1"; echo oh >&2; touch file && stat -c '%u %g' file`)
	o, err := a.runPlugin(t.Context(), plugin.Program{Path: path, Args: []string{"arg"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: a.sandbox.Scratch(), Combined: true})
	if err != nil {
		t.Fatal(err)
	}
	want := `Uid: 4712 4712 4712 4712
Gid: 65533 65533 65533 65533
Groups: 
NoNewPrivs: 1
SigBlk: 0000000000000000
SigIgn: 0000000000000000
CapInh: 0000000000000000
CapPrm: 0000000000000000
CapEff: 0000000000000000
CapAmb: 0000000000000000
0022
` + a.sandbox.Scratch() + "\n/dev/null\n0 1 2 3 arg\noh\n4712 65533\n"
	// Signals 32 and 33 are the C library's own, which ignores them in what it spawns,
	// as make(1) does this test: nobody uses them otherwise.
	ownOfLibc := regexp.MustCompile(`(SigIgn: 0{7})[01][08](0{7})\b`)
	got := ownOfLibc.ReplaceAllString(string(o.Output), "${1}00${2}") // the last descriptor is that by which ls reads them
	var missing []string
	for _, line := range strings.SplitAfter(want, "\n") {
		if !strings.Contains(got, line) {
			missing = append(missing, line)
		}
	}
	if len(missing) > 0 {
		t.Errorf("missing %q in\n%s", missing, got)
	}
	if o.Status.ExitStatus() != 0 || o.Took <= 0 {
		t.Errorf("%+v", o)
	}
}

// TestPluginLeavesNothing: what a plugin started is gone when it has ended, whatever it
// did to hide.
func TestPluginLeavesNothing(t *testing.T) {
	for name, text := range map[string]string{
		"in its group":      `sleep 1000 & echo $! >left`,
		"in another":        `setsid sh -c 'echo $$ >left; exec sleep 1000' & while [ ! -s left ]; do sleep 0.01; done`,
		"an orphan":         `(setsid sh -c '(setsid sh -c "echo \$\$ >left; exec sleep 1000" &)' &) ; while [ ! -s left ]; do sleep 0.01; done`,
		"holds the streams": `setsid sh -c 'echo $$ >left; sleep 1000; echo late' & while [ ! -s left ]; do sleep 0.01; done`,
		"and is killed":     `setsid sh -c 'echo $$ >left; exec sleep 1000' & while [ ! -s left ]; do sleep 0.01; done; kill -9 $$`,
	} {
		t.Run(name, func(t *testing.T) {
			a := pluginActivation(t, 4713)
			path := siteProgram(t, text)
			if _, err := a.runPlugin(t.Context(), plugin.Program{Path: path, Env: []string{"PATH=/usr/bin:/bin"}, Dir: a.sandbox.Scratch()}); err != nil {
				t.Fatal(err)
			}
			text, err := a.sandbox.ReadFile("left", 100)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			waitDead(t, pid)
		})
	}
}

// TestPluginEndsWithItsContext: a plugin is asked to end first.
func TestPluginEndsWithItsContext(t *testing.T) {
	a := pluginActivation(t, 4714)
	why := errors.New("the reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := a.sandbox.ReadFile("begun", 1); err == nil {
				cancel(why)
			}
			<-time.After(5 * time.Millisecond)
		}
	}()
	path := siteProgram(t, `trap 'echo asked >asked; exit 0' TERM; : >begun; while :; do sleep 0.05; done`)
	_, err := a.runPlugin(ctx, plugin.Program{Path: path, Env: []string{"PATH=/usr/bin:/bin"}, Dir: a.sandbox.Scratch()})
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if text, err := a.sandbox.ReadFile("asked", 10); err != nil || string(text) != "asked\n" {
		t.Errorf("the plugin was not asked to end: %q, %v", text, err)
	}
}

// TestRemainsAreOthers: processes of the job's user that are no plugin's live on.
func TestRemainsAreOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	a := pluginActivation(t, 4715)
	other, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{Dir: "/",
		Sys: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4715, Gid: 4715}}})
	if err != nil {
		t.Fatal(err)
	}
	path := siteProgram(t, "exit 0")
	_, err = a.runPlugin(t.Context(), plugin.Program{Path: path, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	state, err := other.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if got := state.Sys().(syscall.WaitStatus).Signal(); got != syscall.SIGTERM {
		t.Errorf("the other process died of %v", got)
	}
}

func TestUserPlugins(t *testing.T) {
	for knob, want := range map[string]plugin.UserPlugins{
		"": plugin.Allow, "0": plugin.Allow, "false": plugin.Allow, "-1": plugin.Allow, "True": plugin.Refuse, "2": plugin.Ignore, "3": plugin.Refuse,
		"TARGET.Bad": plugin.Refuse, "MY.Level": plugin.Ignore, "TARGET.Missing": plugin.Allow, "1 +": plugin.Allow,
	} {
		a := &activation{log: slog.New(slog.DiscardHandler), cfg: config.FromMap(map[string]string{"STARTER_DISABLE_USER_SUPPLIED_TRANSFER_PLUGINS": knob}),
			set: settings.Settings{Backend: settings.BackendLocal}, ad: parsed(t, "Bad = true"), machine: parsed(t, "Level = 2")}
		if got := a.userPlugins(); got != want {
			t.Errorf("%q: %d, want %d", knob, got, want)
		}
	}
}

func parsed(t *testing.T, text string) *classads.Ad {
	t.Helper()
	ad, err := classads.ParseOld(text)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

// TestURLAbilities is what -classad says of URLs.
func TestURLAbilities(t *testing.T) {
	path := siteProgram(t, `if [ "$1" = -classad ]; then echo 'MultipleFileSupport = true'; echo 'SupportedMethods = "good,bad"'; echo 'good_proxy = "p"'; exit; fi
grep -q '://fine' "$2" && echo '[ TransferSuccess = true ]' >"$4"`)
	execute := t.TempDir()
	for _, dir := range []string{execute, filepath.Dir(execute)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		knobs map[string]string
		want  string
	}{
		"plain": {want: `HasJobTransferPlugins = true
HasFileTransferPluginMethods = "bad,good"
good_proxy = "p"
`},
		"tested": {knobs: map[string]string{"good_TEST_URL": "good://fine", "bad_TEST_URL": "bad://no"}, want: `HasJobTransferPlugins = true
HasFileTransferPluginMethods = "good"
OfflineFileTransferPluginMethods = "bad"
good_proxy = "p"
`},
		"off": {knobs: map[string]string{"ENABLE_URL_TRANSFERS": "false"}},
		"jobs' own are refused": {knobs: map[string]string{"STARTER_DISABLE_USER_SUPPLIED_TRANSFER_PLUGINS": "TARGET.Owner == \"x\""}, want: `HasJobTransferPlugins = true
HasDisableUserTransferPlugins = TARGET.Owner == "x"
HasFileTransferPluginMethods = "bad,good"
good_proxy = "p"
`},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := map[string]string{"FILETRANSFER_PLUGINS": path, "EXECUTE": execute, "LOCK": t.TempDir()}
			for k, v := range tt.knobs {
				knobs[k] = v
			}
			ad := classads.NewAd()
			urlAbilities(t.Context(), ad, settings.Settings{Backend: settings.BackendLocal, PrivateDir: t.TempDir()}, config.FromMap(knobs), []string{"PATH=/usr/bin:/bin"}, slog.New(slog.DiscardHandler))
			if diff := cmp.Diff(tt.want, ad.FormatOld()); diff != "" {
				t.Error(diff)
			}
			if left, _ := filepath.Glob(execute + "/*"); len(left) > 0 {
				t.Errorf("left in EXECUTE: %v", left)
			}
		})
	}
}

// TestTransferHistory is the log of transfers: whole records, and a new file when the
// old one is large.
func TestTransferHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "transfer_history")
	h := &transferHistory{path: path, owner: sandbox.Self(), job: func(ad *classads.Ad) { ad.SetInt("JobClusterId", 7) }}
	for i := range 2 {
		h.add(parsed(t, fmt.Sprintf("A = %d", i)))
	}
	h.flush()
	h.flush()
	const want = "***\nA = 0\nJobClusterId = 7\n***\nA = 1\nJobClusterId = 7\n"
	if text, err := os.ReadFile(path); err != nil || string(text) != want || h.err != nil {
		t.Errorf("%q, %v, %v", text, err, h.err)
	}
	if err := os.Truncate(path, mostHistory+1); err != nil {
		t.Fatal(err)
	}
	h.add(parsed(t, "A = 2"))
	h.flush()
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "***\nA = 2") {
		t.Errorf("%q, %v", text, err)
	}
	if st, err := os.Stat(path + ".old"); err != nil || st.Size() != mostHistory+1 {
		t.Errorf("%v, %v", st, err)
	}
	link := &transferHistory{path: path + ".link", owner: sandbox.Self(), job: func(*classads.Ad) {}}
	if err := os.Symlink(path, link.path); err != nil {
		t.Fatal(err)
	}
	link.add(classads.NewAd())
	if link.flush(); link.err == nil {
		t.Error("a link was followed")
	}
}

// FuzzRealGroup is what the kernel says of a process, whose name anybody may choose.
func FuzzRealGroup(f *testing.F) {
	f.Add([]byte("Name:\tsh\nUid:\t1\t1\t1\t1\nGid:\t65533\t65533\t65533\t65533\n"))
	f.Add([]byte("Name:\tGid: 65533\nGid:"))
	f.Add([]byte("Gid:\tx"))
	f.Fuzz(func(t *testing.T, status []byte) {
		if got := realGroup(status); got < -1 {
			t.Errorf("group %d", got)
		}
	})
	if got := realGroup([]byte("Name:\tGid: 1\nUid:\t1\nGid:\t65533\t1\t1\t1\n")); got != 65533 {
		f.Errorf("got %d", got)
	}
}
