package inventory

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/sandbox/sandboxtest"
)

func TestInventory(t *testing.T) {
	s := sandboxtest.New(t)
	v := New("1_0_manifest", s, slog.New(slog.DiscardHandler))
	if v.Output() != nil {
		t.Errorf("%q before anything was written", v.Output())
	}
	if err := s.WriteFile("data/input", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	v.Before(t.Context())
	v.Environment(func() (string, error) { return "A=1 B=it''''s' 'two C=", nil })
	if err := s.WriteFile("made", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	v.After(t.Context())
	read := func(name string) []string {
		text, err := os.ReadFile(filepath.Join(s.Scratch(), "1_0_manifest", name))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(text), "\n")
		slices.Sort(lines)
		return lines
	}
	for name, want := range map[string][]string{
		"in":          {"", "./1_0_manifest/\n", "./1_0_manifest/in\n", "./data/\n", "./data/input\n"},
		"environment": {"", "A=1 B=it''''s' 'two C=\n"},
		"out":         {"", "./1_0_manifest/\n", "./1_0_manifest/environment\n", "./1_0_manifest/in\n", "./1_0_manifest/out\n", "./data/\n", "./data/input\n", "./made\n"},
	} {
		if diff := cmp.Diff(want, read(name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"1_0_manifest"}, v.Output()); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(filepath.Join(s.Scratch(), "1_0_manifest"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info, err)
	}
}

func TestNotWanted(t *testing.T) {
	v := Inventory{}
	v.Before(t.Context())
	v.Environment(func() (string, error) { t.Error("asked for the environment"); return "", nil })
	v.After(t.Context())
	if v.Output() != nil {
		t.Errorf("%q", v.Output())
	}
}

// TestHostile: the job has put something else into the place of its manifest. Nothing
// outside of the sandbox is touched, nothing hangs, and nothing is promised as output.
func TestHostile(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, []byte("as it was"), 0o666); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		dir   string
		plant func(place string) error
		made  bool
	}{
		"a link out of the sandbox":  {"m", func(p string) error { return os.Symlink(filepath.Dir(outside), p) }, false},
		"a file":                     {"m", func(p string) error { return os.WriteFile(p, nil, 0o666) }, false},
		"a directory that is closed": {"m", func(p string) error { return os.Mkdir(p, 0) }, false},
		"a link below to a file outside": {"m", func(p string) error {
			if err := os.Mkdir(p, 0o777); err != nil {
				return err
			}
			return os.Symlink(outside, filepath.Join(p, "out"))
		}, true},
		"a name that is too long": {strings.Repeat("n", 300), func(string) error { return nil }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := sandboxtest.New(t)
			if err := tt.plant(filepath.Join(s.Scratch(), tt.dir)); err != nil {
				t.Fatal(err)
			}
			var log strings.Builder
			v := New(tt.dir, s, slog.New(slog.NewTextHandler(&log, nil)))
			v.After(t.Context())
			if got := len(v.Output()) > 0; got != tt.made {
				t.Errorf("output: %q", v.Output())
			}
			if !strings.Contains(log.String(), "manifest is missing") {
				t.Errorf("the log says nothing of it: %q", log.String())
			}
			if text, err := os.ReadFile(outside); err != nil || string(text) != "as it was" {
				t.Errorf("the file outside has become %q, %v", text, err)
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(outside), "out")); err == nil {
				t.Error("a file was written outside of the sandbox")
			}
		})
	}
}

// TestDirectoriesAbove: a manifest may be in a directory that does not exist yet.
func TestDirectoriesAbove(t *testing.T) {
	s := sandboxtest.New(t)
	v := New("a/b/c", s, slog.New(slog.DiscardHandler))
	v.Before(t.Context())
	if _, err := os.Stat(filepath.Join(s.Scratch(), "a/b/c/in")); err != nil || len(v.Output()) != 1 {
		t.Errorf("%v, output %q", err, v.Output())
	}
}

// TestRemovedAndMadeAgain: the job may remove its manifest.
func TestRemovedAndMadeAgain(t *testing.T) {
	s := sandboxtest.New(t)
	v := New("m", s, slog.New(slog.DiscardHandler))
	v.Before(t.Context())
	if err := s.RemoveTree(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	v.After(t.Context())
	if _, err := os.Stat(filepath.Join(s.Scratch(), "m", "out")); err != nil || len(v.Output()) != 1 {
		t.Errorf("%v, output %q", err, v.Output())
	}
	// A job that is cut short leaves what was written until then.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v.After(ctx)
	if len(v.Output()) != 1 {
		t.Errorf("output %q", v.Output())
	}
}
