package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/plugin"
	"podstarter/sandbox"
	"podstarter/starter/hostprog"
	"podstarter/starter/hostprog/hostprogtest"
	"podstarter/starter/settings"
)

// pluginActivation has a sandbox that belongs to a payload user.
func pluginActivation(t *testing.T, box *sandbox.Sandbox) *activation {
	t.Helper()
	a := &activation{sandbox: box, name: t.Name(), log: slog.New(slog.DiscardHandler), ad: classads.NewAd(), machine: classads.NewAd()}
	a.useKnobs(config.FromMap(nil))
	return a
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
	path := hostprogtest.Script(t, `if [ "$1" = -classad ]; then echo 'MultipleFileSupport = true'; echo 'SupportedMethods = "good,bad"'; echo 'good_proxy = "p"'; exit; fi
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
			urlAbilities(t.Context(), ad, hostprog.New(hostprog.Options{SeparateUsers: true}), settings.Settings{Backend: settings.BackendLocal, PrivateDir: t.TempDir()}, config.FromMap(knobs), []string{"PATH=/usr/bin:/bin"}, slog.New(slog.DiscardHandler))
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
