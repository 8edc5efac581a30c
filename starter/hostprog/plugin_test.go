package hostprog

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/condor/plugin"
	"podstarter/starter/hostprog/hostprogtest"
)

// forJob has a sandbox that belongs to a payload user.
func forJob(t *testing.T, uid int) Job {
	t.Helper()
	return Job{Host: New(Options{SeparateUsers: true}), Sandbox: hostprogtest.Sandbox(t, uid), Name: t.Name(), Log: slog.New(slog.DiscardHandler)}
}

// readFile reads what a plugin wrote.
func readFile(j Job, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(j.Sandbox.Scratch(), name))
}

// TestPluginHasNoRights is who a plugin is: the job's user in no group of anybody's,
// without a way to more, and with nothing of the starter's but three descriptors.
func TestPluginHasNoRights(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	// What this process was started with, or has opened so.
	fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	j := forJob(t, 4712)
	path := hostprogtest.Script(t, `grep -e ^Uid -e ^Gid -e ^Groups -e ^NoNewPrivs -e ^CapInh -e ^CapPrm -e ^CapEff -e ^CapAmb -e ^SigBlk -e ^SigIgn /proc/self/status | tr -s '\t ' ' '
umask; pwd; readlink /proc/$$/fd/0; ls /proc/self/fd | tr '\n' ' '; echo "$1"; echo oh >&2; touch file && stat -c '%u %g' file`)
	o, err := j.RunPlugin(t.Context(), plugin.Program{Path: path, Args: []string{"arg"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: j.Sandbox.Scratch(), Combined: true})
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
` + j.Sandbox.Scratch() + "\n/dev/null\n0 1 2 3 arg\noh\n4712 65533\n"
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
			j := forJob(t, 4713)
			path := hostprogtest.Script(t, text)
			if _, err := j.RunPlugin(t.Context(), plugin.Program{Path: path, Env: []string{"PATH=/usr/bin:/bin"}, Dir: j.Sandbox.Scratch()}); err != nil {
				t.Fatal(err)
			}
			text, err := readFile(j, "left")
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
	j := forJob(t, 4714)
	why := errors.New("the reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := readFile(j, "begun"); err == nil {
				cancel(why)
			}
			<-time.After(5 * time.Millisecond)
		}
	}()
	path := hostprogtest.Script(t, `trap 'echo asked >asked; exit 0' TERM; : >begun; while :; do sleep 0.05; done`)
	_, err := j.RunPlugin(ctx, plugin.Program{Path: path, Env: []string{"PATH=/usr/bin:/bin"}, Dir: j.Sandbox.Scratch()})
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if text, err := readFile(j, "asked"); err != nil || string(text) != "asked\n" {
		t.Errorf("the plugin was not asked to end: %q, %v", text, err)
	}
}

// TestOthersLiveOn: processes of the job's user that are no plugin's live on.
func TestOthersLiveOn(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	j := forJob(t, 4715)
	other, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{Dir: "/",
		Sys: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4715, Gid: 4715}}})
	if err != nil {
		t.Fatal(err)
	}
	path := hostprogtest.Script(t, "exit 0")
	_, err = j.RunPlugin(t.Context(), plugin.Program{Path: path, Dir: "/"})
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
