package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/job"
	"podstarter/payload"
	"podstarter/sandbox/confine"
	"podstarter/starter/hostprog"
	"podstarter/starter/hostprog/hostprogtest"
	"podstarter/starter/settings"
)

// TestConfinedPrograms: where hooks run as the pilot's own user, a link in the sandbox
// leads them nowhere, and they leave nothing outside.
func TestConfinedPrograms(t *testing.T) {
	if !hostprogtest.AsPilot(t) {
		return
	}
	if err := confine.Supported(); err != nil {
		t.Skip(err)
	}
	prepare := func(t *testing.T) (*activation, hostprogtest.Trap) {
		t.Helper()
		trap := hostprogtest.NewTrap(t)
		a := pluginActivation(t, trap.Sandbox)
		a.set.Backend = settings.BackendPod
		a.host = hostOf(a.set)
		return a, trap
	}
	t.Run("hook", func(t *testing.T) {
		a, trap := prepare(t)
		a.environ = []string{"PATH=/usr/bin:/bin"}
		a.lease = anyLease{}
		p, err := a.hookProgram(job.HookJobExit, trap.Program, a.ad)
		if err == nil {
			_, err = p.Run(t.Context(), false)
		}
		if err != nil {
			t.Fatal(err)
		}
		trap.Check(t)
	})
	// Which may read what the pilot may, so that it is told of nothing in the sandbox.
	t.Run("diagnostic", func(t *testing.T) {
		a, _ := prepare(t)
		a.useKnobs(config.FromMap(map[string]string{"STARTER_DIAGNOSTIC_look": hostprogtest.Script(t, "pwd; env")}))
		o, said, err := a.runDiagnostic(t.Context(), "look")
		if err != nil || said != diagnosticDone || !strings.HasPrefix(string(o.Stdout), "/\n") || strings.Contains(string(o.Stdout), a.sandbox.Scratch()) {
			t.Errorf("%q: it says %q, %v", said, o.Stdout, err)
		}
	})
}

// anyLease is of no container.
type anyLease struct{ payload.Lease }

func (anyLease) Owner() (int, int) { return os.Getuid(), os.Getgid() }

// TestUnconfinable: on a kernel that cannot confine them, a pilot without root runs no
// programs for jobs, and says why.
func TestUnconfinable(t *testing.T) {
	if !hostprogtest.AsPilot(t) {
		return
	}
	a := pluginActivation(t, hostprogtest.Sandbox(t, 0))
	a.host = hostprog.New(hostprog.Options{KernelConfines: func() error { return confine.ErrUnsupported }})
	a.set.Backend, a.set.PrivateDir = settings.BackendPod, t.TempDir()
	marks := filepath.Join(t.TempDir(), "ran")
	path := hostprogtest.Script(t, "echo x >>"+marks+"; echo 'SupportedMethods = \"evil\"'")
	a.useKnobs(config.FromMap(map[string]string{
		"FILETRANSFER_PLUGINS": path, "STARTER_JOB_HOOK_KEYWORD": "SITE", "SITE_HOOK_JOB_EXIT": path,
	}))
	why := "no Landlock"

	u := a.openPlugins()
	if p, failure := u.For(t.Context(), "evil://h/p?key"); p != nil || failure == nil || !strings.Contains(failure.Text, why) || strings.Contains(failure.Text, "key") {
		t.Errorf("a URL is moved by %v, %+v", p, failure)
	}
	ad := classads.NewAd()
	urlAbilities(t.Context(), ad, a.host, a.set, a.cfg, nil, slog.New(slog.DiscardHandler))
	if methods, ok := ad.Lookup("HasFileTransferPluginMethods"); ok {
		t.Errorf("the slot promises %s", methods)
	}
	if err := a.openHooks(); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("hooks: %v", err)
	}
	if _, err := os.Stat(marks); err == nil {
		t.Error("a program ran")
	}
}
