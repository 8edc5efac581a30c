package hostprog

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/plugin"
	"podstarter/payload"
	"podstarter/sandbox"
	"podstarter/sandbox/confine"
	"podstarter/starter/hostprog/hostprogtest"
)

// TestConfined: where plugins and hooks run as the pilot's own user, a link in the
// sandbox leads them nowhere, and they leave nothing outside.
func TestConfined(t *testing.T) {
	if !hostprogtest.AsPilot(t) {
		return
	}
	if err := confine.Supported(); err != nil {
		t.Skip(err)
	}
	environ := []string{"PATH=/usr/bin:/bin"}
	for name, run := range map[string]func(t *testing.T, j Job, path string) error{
		"plugin": func(t *testing.T, j Job, path string) error {
			_, err := j.RunPlugin(t.Context(), plugin.Program{Path: path, Env: environ, Dir: j.Sandbox.Scratch()})
			return err
		},
		"hook": func(t *testing.T, j Job, path string) error {
			p := Program{Path: path, Env: environ, Dir: j.Sandbox.Scratch(), As: j.User()}
			if err := j.Confine(&p); err != nil {
				return err
			}
			_, err := p.Run(t.Context(), false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			trap := hostprogtest.NewTrap(t)
			j := Job{Host: New(Options{}), Sandbox: trap.Sandbox, Name: t.Name(), Log: slog.New(slog.DiscardHandler)}
			if err := run(t, j, trap.Program); err != nil {
				t.Fatal(err)
			}
			trap.Check(t)
		})
	}
}

// TestWhatIsLeft: a confined program may read what the site names, and the certificates
// that its variables name, if the paths are absolute.
func TestWhatIsLeft(t *testing.T) {
	j := Job{Host: New(Options{Paths: []string{"/mnt/plugins"}}), Sandbox: hostprogtest.Sandbox(t, 0),
		Environ: []string{"SSL_CERT_DIR=/certs/a:certs/b:/certs/c", "NOT_SSL_CERT_DIR=/no", "X509_CERT_DIR=", "HOME=/no"}}
	c, err := j.confinement()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	want := append(append([]string(nil), programFiles...), "/mnt/plugins", "/certs/a", "/certs/c")
	if diff := cmp.Diff(want, c.rules.Read); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestConfiguration: a confined program reads HTCondor's configuration, without which
// Python plugins end, but neither a file of it that is closed to others nor the tokens
// beside it.
func TestConfiguration(t *testing.T) {
	if !hostprogtest.AsPilot(t) {
		return
	}
	if err := confine.Supported(); err != nil {
		t.Skip(err)
	}
	etc := t.TempDir()
	for name, mode := range map[string]os.FileMode{
		"condor_config": 0o644, "config.d/10-open": 0o644, "config.d/20-closed": 0o600, "config.d/tokens.d/pool": 0o644, "tokens.d/pool": 0o644, "local": 0o640,
	} {
		path := filepath.Join(etc, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name+"\n"), mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(etc, "config.d/10-open"), filepath.Join(etc, "config.d/30-link")); err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, name := range []string{"condor_config", "config.d", "local", "none"} {
		named = append(named, filepath.Join(etc, name))
	}
	j := Job{Host: New(Options{Configuration: named}), Sandbox: hostprogtest.Sandbox(t, 0), Name: t.Name(), Log: slog.New(slog.DiscardHandler)}
	path := hostprogtest.Script(t, `ls "$1/config.d"; for f in condor_config config.d/10-open config.d/20-closed config.d/30-link config.d/tokens.d/pool tokens.d/pool local; do cat "$1/$f"; done; ls "$1/tokens.d"
(echo x >>"$1/condor_config") || echo not changed`)
	o, err := j.RunPlugin(t.Context(), plugin.Program{Path: path, Args: []string{etc}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: j.Sandbox.Scratch()})
	if err != nil {
		t.Fatal(err)
	}
	want := "10-open\n20-closed\n30-link\ntokens.d\n" + "condor_config\nconfig.d/10-open\nconfig.d/10-open\nnot changed\n"
	if diff := cmp.Diff(want, string(o.Output)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnconfinable: on a kernel that cannot confine them, a pilot without root runs no
// programs for jobs, and says why. Where users are separate, nothing is confined.
func TestUnconfinable(t *testing.T) {
	cannot := func() error { return confine.ErrUnsupported }
	can := func() error { return nil }
	for name, tt := range map[string]struct {
		options Options
		refused bool
		grades  []payload.Grade
	}{
		"a kernel that cannot": {Options{KernelConfines: cannot}, true, []payload.Grade{payload.Warn}},
		"one that can":         {Options{KernelConfines: can}, false, []payload.Grade{payload.OK}},
		"separate users":       {Options{SeparateUsers: true, KernelConfines: cannot}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := New(tt.options)
			if err := h.Confinable(); (err != nil) != tt.refused || tt.refused && !errors.Is(err, confine.ErrUnsupported) {
				t.Errorf("got %v", err)
			}
			var grades []payload.Grade
			for _, f := range h.Audit() {
				grades = append(grades, f.Grade)
			}
			if diff := cmp.Diff(tt.grades, grades); diff != "" {
				t.Errorf("the audit (-want +got):\n%s", diff)
			}
			if !tt.refused {
				return
			}
			j := Job{Host: h, Sandbox: hostprogtest.Sandbox(t, sandbox.Self().UID), Name: t.Name(), Log: slog.New(slog.DiscardHandler)}
			mark := filepath.Join(t.TempDir(), "ran")
			path := hostprogtest.Script(t, "echo x >"+mark)
			if _, err := j.RunPlugin(t.Context(), plugin.Program{Path: path, Dir: j.Sandbox.Scratch()}); !errors.Is(err, ErrNotRun) {
				t.Errorf("a plugin: %v", err)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("a program ran")
			}
		})
	}
}
