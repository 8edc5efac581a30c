package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/sandbox"
	"podstarter/sandbox/sandboxtest"
)

// TestMoveTo: a sandbox that the site keeps has a new name, and only HTCondor's user gets
// into it.
func TestMoveTo(t *testing.T) {
	for name, tt := range map[string]struct {
		nested, apart bool
		before        func(t *testing.T, execute, elsewhere string) // makes what is in the way
		to            string                                        // ELSEWHERE and SCRATCH are replaced
		err           error
		says          string
	}{
		"flat":                    {to: "ELSEWHERE/kept"},
		"nested":                  {to: "ELSEWHERE/kept", nested: true},
		"apart":                   {to: "ELSEWHERE/kept", nested: true, apart: true},
		"apart, beside it":        {to: "kept", nested: true, apart: true, says: "before the next job"},
		"apart, into the same":    {to: "SCRATCH/kept", nested: true, apart: true, says: "before the next job"},
		"apart, deeper":           {to: "SCRATCH/in/kept", nested: true, apart: true, says: "before the next job"},
		"beside it":               {to: "kept", nested: true},
		"over an empty directory": {to: "ELSEWHERE/kept", before: func(t *testing.T, _, elsewhere string) { must(t, os.Mkdir(elsewhere+"/kept", 0o755)) }},
		"over another": {to: "ELSEWHERE/kept", err: unix.ENOTEMPTY, before: func(t *testing.T, _, elsewhere string) {
			must(t, os.MkdirAll(elsewhere+"/kept/earlier", 0o755))
		}},
		"over a file": {to: "ELSEWHERE/kept", err: unix.ENOTDIR, before: func(t *testing.T, _, elsewhere string) {
			must(t, os.WriteFile(elsewhere+"/kept", nil, 0o644))
		}},
		"over a link": {to: "ELSEWHERE/kept", err: unix.ENOTDIR, before: func(t *testing.T, execute, elsewhere string) {
			must(t, os.Symlink(execute, elsewhere+"/kept"))
		}},
		"to no directory": {to: "ELSEWHERE/none/kept", err: os.ErrNotExist},
		"by a trusted link": {to: "ELSEWHERE/link/kept", nested: true, before: func(t *testing.T, _, elsewhere string) {
			must(t, os.Mkdir(elsewhere+"/real", 0o755))
			must(t, os.Symlink("link2", elsewhere+"/link"))
			must(t, os.Symlink(elsewhere+"/real", elsewhere+"/link2"))
		}},
		"by links in a circle": {to: "ELSEWHERE/link/kept", err: unix.ELOOP, before: func(t *testing.T, _, elsewhere string) {
			must(t, os.Symlink("link", elsewhere+"/link"))
		}},
		"where a group may write": {to: "ELSEWHERE/open/kept", says: "others may write", before: func(t *testing.T, _, elsewhere string) {
			must(t, os.Mkdir(elsewhere+"/open", 0o755))
			must(t, os.Chmod(elsewhere+"/open", 0o775))
		}},
		"into HTCondor's directory": {to: "ELSEWHERE/condors/kept", before: func(t *testing.T, _, elsewhere string) {
			must(t, os.Mkdir(elsewhere+"/condors", 0o755))
			if os.Geteuid() == 0 {
				must(t, os.Chown(elsewhere+"/condors", sandboxtest.CondorUID, sandboxtest.CondorUID))
			}
		}},
		"where all may write": {to: "ELSEWHERE/open/kept", says: "others may write", before: func(t *testing.T, _, elsewhere string) {
			must(t, os.Mkdir(elsewhere+"/open", 0o755))
			must(t, os.Chmod(elsewhere+"/open", 0o777))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			execute, elsewhere := sandboxtest.ExecuteDir(t), sandboxtest.ExecuteDir(t)
			if tt.before != nil {
				tt.before(t, execute, elsewhere)
			}
			o := sandbox.Options{Execute: execute, PID: 7, Nested: tt.nested, Condor: sandbox.Self(), Payload: sandboxtest.Owner()}
			if tt.apart {
				o.Scratch = sandboxtest.ExecuteDir(t)
			}
			if os.Geteuid() == 0 {
				o.Condor = sandbox.Owner{UID: sandboxtest.CondorUID, GID: sandboxtest.CondorUID}
			}
			s, err := sandbox.Create(context.Background(), o)
			must(t, err)
			must(t, s.WriteFile("result", []byte("x"), 0o644))
			scratch, _ := filepath.Rel(s.Dir(), s.Scratch())
			err = s.MoveTo(context.Background(), strings.NewReplacer("ELSEWHERE", elsewhere, "SCRATCH", o.Scratch).Replace(tt.to))
			if tt.err != nil || tt.says != "" {
				if err == nil || tt.err != nil && !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%v, want %v %s", err, tt.err, tt.says)
				}
				must(t, s.Remove(context.Background()))
				if left, err := os.ReadDir(execute); err != nil || len(left) != 0 {
					t.Errorf("%s holds %v", execute, left)
				}
				return
			}
			must(t, err)
			kept := filepath.Join(elsewhere, "kept")
			switch tt.to {
			case "kept":
				kept = filepath.Join(execute, "kept")
			case "ELSEWHERE/condors/kept":
				kept = filepath.Join(elsewhere, "condors", "kept")
			case "ELSEWHERE/link/kept":
				kept = filepath.Join(elsewhere, "real", "kept")
			}
			if data, err := os.ReadFile(filepath.Join(kept, scratch, "result")); err != nil || string(data) != "x" {
				t.Errorf("result: %q, %v", data, err)
			}
			info, err := os.Stat(kept)
			must(t, err)
			if info.Mode().Perm() != 0o700 {
				t.Errorf("mode %v", info.Mode())
			}
			if uid := int(info.Sys().(*syscall.Stat_t).Uid); o.Condor.UID >= 0 && uid != o.Condor.UID || o.Condor.UID < 0 && uid != os.Geteuid() {
				t.Errorf("it belongs to uid %d", uid)
			}
			for _, gone := range []string{s.Dir(), filepath.Join(execute, "dir_7")} {
				if _, err := os.Lstat(gone); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is there: %v", gone, err)
				}
			}
		})
	}
}

// TestMoveToAnother: a directory that has taken the sandbox's name stays where it is.
func TestMoveToAnother(t *testing.T) {
	execute := sandboxtest.ExecuteDir(t)
	s, err := sandbox.Create(context.Background(), sandbox.Options{Execute: execute, PID: 7, Nested: true, Condor: sandbox.Self(), Payload: sandboxtest.Owner()})
	must(t, err)
	must(t, os.Rename(s.Dir(), execute+"/aside"))
	must(t, os.Mkdir(s.Dir(), 0o755))
	if err := s.MoveTo(context.Background(), "kept"); err == nil || !strings.Contains(err.Error(), "another directory") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(execute + "/kept"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was moved: %v", err)
	}
	must(t, s.Remove(context.Background()))
}

// TestMoveToPlanted: root follows no link of the payload's user.
func TestMoveToPlanted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for name, plant := range map[string]func(dir string) error{
		"a link": func(dir string) error {
			if err := os.Symlink("/", dir+"/planted"); err != nil {
				return err
			}
			return os.Lchown(dir+"/planted", sandboxtest.PayloadUID, sandboxtest.PayloadUID)
		},
		"a directory": func(dir string) error {
			if err := os.Mkdir(dir+"/planted", 0o755); err != nil {
				return err
			}
			return os.Chown(dir+"/planted", sandboxtest.PayloadUID, sandboxtest.PayloadUID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			execute, elsewhere := sandboxtest.ExecuteDir(t), sandboxtest.ExecuteDir(t)
			must(t, os.Chmod(elsewhere, os.ModeSticky|0o777))
			must(t, plant(elsewhere))
			s, err := sandbox.Create(context.Background(), sandbox.Options{Execute: execute, PID: 7, Nested: true, Condor: sandbox.Self(), Payload: sandboxtest.Owner()})
			must(t, err)
			if err := s.MoveTo(context.Background(), elsewhere+"/planted/kept"); err == nil || !strings.Contains(err.Error(), "uid 10001") {
				t.Errorf("%v", err)
			}
			must(t, s.Remove(context.Background()))
		})
	}
}
