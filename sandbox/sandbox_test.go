package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/sandbox"
	"podstarter/sandbox/beneath"
	"podstarter/sandbox/sandboxtest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listing describes a tree: "path mode uid" of every directory and file.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		out = append(out, fmt.Sprintf("%s %o %d", rel, st.Mode&0o7777, st.Uid))
		return nil
	}))
	return out
}

func TestCreateLayouts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	payload := sandbox.Owner{UID: sandboxtest.PayloadUID, GID: sandboxtest.PayloadUID}
	condor := sandbox.Owner{UID: sandboxtest.CondorUID, GID: sandboxtest.CondorUID}
	defer unix.Umask(unix.Umask(0o077)) // modes must not depend on it
	for _, c := range []struct {
		name    string
		options sandbox.Options
		want    []string
	}{
		{"nested", sandbox.Options{Nested: true, Condor: condor, Payload: payload}, []string{
			". 755 10064", "htcondor 755 10064", "scratch 700 10001", "user 700 10001"}},
		{"nested, world", sandbox.Options{Nested: true, Condor: condor, Payload: payload, Mode: sandbox.Permissions("World")}, []string{
			". 755 10064", "htcondor 755 10064", "scratch 755 10001", "user 700 10001"}},
		{"flat, group", sandbox.Options{Condor: condor, Payload: payload, Mode: sandbox.Permissions("group")}, []string{
			". 750 10001"}},
		{"all one", sandbox.Options{Nested: true, Condor: sandbox.Self(), Payload: sandbox.Self()}, []string{
			". 755 0", "htcondor 755 0", "scratch 700 0", "user 700 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Execute, c.options.PID = sandboxtest.ExecuteDir(t), 77
			left := filepath.Join(c.options.Execute, "dir_77", "old")
			must(t, os.MkdirAll(left, 0))
			s, err := sandbox.Create(context.Background(), c.options)
			must(t, err)
			if diff := cmp.Diff(c.want, listing(t, s.Dir())); diff != "" {
				t.Error(diff)
			}
			must(t, s.WriteFile(".job.ad", []byte("x = 1\n"), 0o644))
			must(t, s.WriteFile("creds/a.use", []byte("secret"), 0o600))
			must(t, s.WriteFile("creds/a.use", []byte("secret2"), 0o600))
			must(t, s.WriteUserFile(".chirp.config", nil, 0o600))
			must(t, s.Mkdir("dir", 0o755))
			must(t, s.Mkdir("dir", 0o755))
			must(t, s.Remove(context.Background()))
			must(t, s.Remove(context.Background()))
			if names, _ := os.ReadDir(c.options.Execute); len(names) != 0 {
				t.Errorf("left: %v", names)
			}
		})
	}
}

func TestCreateWithoutRoot(t *testing.T) {
	if !sandboxtest.AsPayload(t) {
		return
	}
	s, err := sandbox.Create(context.Background(), sandbox.Options{Execute: sandboxtest.ExecuteDir(t), PID: 1, Nested: true,
		Condor: sandbox.Self(), Payload: sandbox.Owner{UID: sandboxtest.PayloadUID, GID: sandboxtest.PayloadUID}})
	must(t, err)
	must(t, s.WriteFile("f", []byte("x"), 0o640))
	must(t, os.Mkdir(filepath.Join(s.Scratch(), "locked"), 0))
	want := []string{". 755 10001", "htcondor 755 10001", "scratch 700 10001", "scratch/f 640 10001", "scratch/locked 0 10001", "user 700 10001"}
	must(t, os.Chmod(filepath.Join(s.Scratch(), "locked"), 0o700))
	want[4] = "scratch/locked 700 10001"
	if diff := cmp.Diff(want, listing(t, s.Dir())); diff != "" {
		t.Error(diff)
	}
	must(t, os.Chmod(filepath.Join(s.Scratch(), "locked"), 0))
	must(t, s.Remove(context.Background()))
}

// A world-writable EXECUTE directory that root may not write to.
func TestCreateOnSquashedRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := sandboxtest.ExecuteDir(t)
	must(t, os.Chmod(dir, 0o1777))
	payload := sandbox.Owner{UID: sandboxtest.PayloadUID, GID: sandboxtest.PayloadUID}
	must(t, sandbox.LayAsPayload(dir, "dir_1", sandbox.Options{Nested: true, Condor: sandbox.Self(), Payload: payload, Mode: 0o700}))
	want := []string{". 755 10001", "htcondor 755 10001", "scratch 700 10001", "user 700 10001"}
	if diff := cmp.Diff(want, listing(t, filepath.Join(dir, "dir_1"))); diff != "" {
		t.Error(diff)
	}
}

func TestWriteFileStaysInside(t *testing.T) {
	s := sandboxtest.New(t)
	outside := filepath.Join(filepath.Dir(s.Dir()), "outside")
	must(t, os.WriteFile(outside, []byte("mine"), 0o666))
	must(t, os.Symlink(outside, filepath.Join(s.Scratch(), "link")))
	must(t, os.Symlink("..", filepath.Join(s.Scratch(), "up")))
	must(t, s.WriteFile("link", []byte("theirs"), 0o600)) // replaces the link
	if err := s.WriteFile("up/htcondor/.update.ad", nil, 0o600); !errors.Is(err, beneath.ErrOutside) {
		t.Errorf("through a link: %v", err)
	}
	if err := s.WriteFile("../x", nil, 0o600); !errors.Is(err, beneath.ErrOutside) {
		t.Errorf("..: %v", err)
	}
	if data, _ := os.ReadFile(outside); string(data) != "mine" {
		t.Errorf("outside now has %q", data)
	}
	if data, err := s.ReadFile("link", 3); err != nil || string(data) != "the" {
		t.Errorf("%q, %v", data, err)
	}
	if stamp, err := s.ModTime("absent"); err == nil || !stamp.IsZero() {
		t.Errorf("ModTime of no file: %v, error %v; want no time and an error", stamp, err)
	}
	if _, err := s.ModTime("link"); err != nil {
		t.Error(err)
	}
	names, err := os.ReadDir(s.Scratch())
	must(t, err)
	if len(names) != 2 {
		t.Errorf("temporary files are left: %v", names)
	}
}

func TestUsage(t *testing.T) {
	s := sandboxtest.New(t)
	kib, files, err := s.Usage(context.Background())
	if kib != 0 || files != 3 || err != nil {
		t.Errorf("empty: %d KiB, %d files, %v", kib, files, err)
	}
	must(t, s.WriteFile("a/b", make([]byte, 1025), 0o600))
	kib, files, err = s.Usage(context.Background())
	if kib != 2 || files != 5 || err != nil {
		t.Errorf("%d KiB, %d files, %v; want 2, 5", kib, files, err)
	}
}

func TestRenameFile(t *testing.T) {
	s := sandboxtest.New(t)
	sandboxtest.As(t, s, func(dir string) error { return os.WriteFile(filepath.Join(dir, "core"), []byte("c"), 0o600) })
	must(t, s.RenameFile("core", "core.1.0"))
	if b, err := s.ReadFile("core.1.0", 10); err != nil || string(b) != "c" {
		t.Errorf("%q, %v", b, err)
	}
	if err := s.RenameFile("core", "core.1.0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
	sandboxtest.As(t, s, func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "core")) })
	if err := s.RenameFile("core", "core.1.0"); !errors.Is(err, beneath.ErrNotRegular) {
		t.Errorf("a link: %v", err)
	}
}

// TestReplacedDirectory: something that was put in the place of a new directory is not
// mistaken for it.
func TestReplacedDirectory(t *testing.T) {
	for _, nested := range []bool{false, true} {
		elsewhere := sandboxtest.ExecuteDir(t)
		s, err := sandbox.Create(t.Context(), sandbox.Options{Execute: sandboxtest.ExecuteDir(t), PID: 7, Nested: nested, Condor: sandbox.Self(), Payload: sandbox.Self()})
		must(t, err)
		root, err := s.OpenRoot(s.Scratch())
		must(t, err)
		root.Close()
		must(t, os.Mkdir(filepath.Join(elsewhere, "scratch"), 0o700))
		must(t, os.Rename(s.Scratch(), s.Scratch()+".aside"))
		must(t, os.Symlink(filepath.Join(elsewhere, "scratch"), s.Scratch()))
		if root, err := s.OpenRoot(s.Scratch()); err == nil {
			t.Errorf("nested %t: a link to %s is the sandbox", nested, root.Path())
		}
		must(t, s.Remove(t.Context()))
	}
}
