package main

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/job"
	"podstarter/condor/plugin"
	"podstarter/payload"
	"podstarter/sandbox/confine"
	"podstarter/starter/settings"
)

// asPilot runs the rest of the calling test in a process without root's rights, as a
// pilot without root is, and reports whether this is that process.
func asPilot(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env, cmd.Dir = append(os.Environ(), "TMPDIR=/tmp"), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4716, Gid: 4716}}
	out, err := cmd.CombinedOutput()
	t.Logf("as uid 4716:\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// pilotsSecret is a file of this process' user, outside of any sandbox.
func pilotsSecret(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "secret")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "token")
	if err := os.WriteFile(path, []byte("the pilot's token"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestConfinedPrograms: where plugins and hooks run as the pilot's own user, a link in
// the sandbox leads them nowhere, and they leave nothing outside.
func TestConfinedPrograms(t *testing.T) {
	if !asPilot(t) {
		return
	}
	if err := confine.Supported(); err != nil {
		t.Skip(err)
	}
	secret := pilotsSecret(t)
	reads := siteProgram(t, `exec 2>/dev/null
for path in use ./creds/evil.use "`+secret+`" dir/token /proc/`+"$PPID"+`/environ; do cat "$path" && echo " by $path"; done >said
(echo x >"`+filepath.Dir(secret)+`/left") && echo "left something" >>said
cat file >>said; cat said
`)
	prepare := func(t *testing.T) *activation {
		t.Helper()
		a := pluginActivation(t, 0)
		a.set.Backend = settings.BackendPod
		box := a.sandbox.Scratch()
		// What a job makes.
		err := errors.Join(os.Symlink(secret, box+"/use"), os.Mkdir(box+"/creds", 0o700), os.Symlink(secret, box+"/creds/evil.use"),
			os.Symlink(filepath.Dir(secret), box+"/dir"), os.WriteFile(box+"/file", []byte("the job's"), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	check := func(t *testing.T, a *activation, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		said, err := a.sandbox.ReadFile("said", 1<<16)
		if diff := cmp.Diff("the job's", string(said)); diff != "" || err != nil {
			t.Errorf("the program found (-want +got), %v:\n%s", err, diff)
		}
		left, _ := filepath.Glob(filepath.Dir(secret) + "/left")
		if len(left) > 0 {
			t.Errorf("it left %v", left)
		}
	}
	t.Run("plugin", func(t *testing.T) {
		a := prepare(t)
		_, err := a.runPlugin(t.Context(), plugin.Program{Path: reads, Env: []string{"PATH=/usr/bin:/bin"}, Dir: a.sandbox.Scratch()})
		check(t, a, err)
	})
	t.Run("hook", func(t *testing.T) {
		a := prepare(t)
		a.environ = []string{"PATH=/usr/bin:/bin"}
		a.lease = anyLease{}
		p, err := a.hookProgram(job.HookJobExit, reads, a.ad)
		if err == nil {
			_, err = p.run(t.Context(), false)
		}
		check(t, a, err)
	})
	// Which may read what the pilot may, so that it is told of nothing in the sandbox.
	t.Run("diagnostic", func(t *testing.T) {
		a := prepare(t)
		a.useKnobs(config.FromMap(map[string]string{"STARTER_DIAGNOSTIC_look": siteProgram(t, "pwd; env")}))
		o, said, err := a.runDiagnostic(t.Context(), "look")
		if err != nil || said != diagnosticDone || !strings.HasPrefix(string(o.stdout), "/\n") || strings.Contains(string(o.stdout), a.sandbox.Scratch()) {
			t.Errorf("%q: it says %q, %v", said, o.stdout, err)
		}
	})
}

// anyLease is of no container.
type anyLease struct{ payload.Lease }

func (anyLease) Owner() (int, int) { return os.Getuid(), os.Getgid() }

// TestUnconfinable: on a kernel that cannot confine them, a pilot without root runs no
// programs for jobs, and says why.
func TestUnconfinable(t *testing.T) {
	if !asPilot(t) {
		return
	}
	kernelConfines = func() error { return confine.ErrUnsupported }
	defer func() { kernelConfines = confine.Supported }()
	a := pluginActivation(t, 0)
	a.set.Backend, a.set.PrivateDir = settings.BackendPod, t.TempDir()
	marks := filepath.Join(t.TempDir(), "ran")
	path := siteProgram(t, "echo x >>"+marks+"; echo 'SupportedMethods = \"evil\"'")
	a.useKnobs(config.FromMap(map[string]string{
		"FILETRANSFER_PLUGINS": path, "STARTER_JOB_HOOK_KEYWORD": "SITE", "SITE_HOOK_JOB_EXIT": path,
	}))
	why := "no Landlock"

	u := a.openPlugins()
	if p, failure := u.For(t.Context(), "evil://h/p?key"); p != nil || failure == nil || !strings.Contains(failure.Text, why) || strings.Contains(failure.Text, "key") {
		t.Errorf("a URL is moved by %v, %+v", p, failure)
	}
	ad := classads.NewAd()
	urlAbilities(t.Context(), ad, a.set, a.cfg, nil, slog.New(slog.DiscardHandler))
	if methods, ok := ad.Lookup("HasFileTransferPluginMethods"); ok {
		t.Errorf("the slot promises %s", methods)
	}
	if err := a.openHooks(); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("hooks: %v", err)
	}
	if _, err := a.runPlugin(t.Context(), plugin.Program{Path: path, Dir: a.sandbox.Scratch()}); !errors.Is(err, errNotRun) {
		t.Errorf("a plugin: %v", err)
	}
	found := auditConfinement(a.set)
	if len(found) != 1 || found[0].Grade != payload.Warn {
		t.Errorf("the audit says %+v", found)
	}
	if _, err := os.Stat(marks); err == nil {
		t.Error("a program ran")
	}
}
