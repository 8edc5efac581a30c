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
	"podstarter/sandbox/sandboxtest"
)

// own is a sandbox that belongs to the process itself, whoever that is.
func own(t *testing.T, o sandbox.Options) *sandbox.Sandbox {
	t.Helper()
	o.Execute, o.PID, o.Condor, o.Payload = sandboxtest.ExecuteDir(t), 7, sandbox.Self(), sandbox.Self()
	s, err := sandbox.Create(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { must(t, s.Remove(context.Background())) })
	return s
}

// TestModesWhateverTheUmask: directories and files have the modes that were asked for.
func TestModesWhateverTheUmask(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	s := own(t, sandbox.Options{Nested: true, Mode: sandbox.Permissions("world")})
	path, err := s.WriteTopFile("top", []byte("x"), 0o644)
	must(t, err)
	must(t, s.WriteFile("file", []byte("x"), 0o644))
	if path != filepath.Join(s.Dir(), "top") {
		t.Errorf("the file is at %s", path)
	}
	uid := os.Geteuid()
	var want []string
	for _, line := range []string{". 755", "htcondor 755", "scratch 755", "scratch/file 644", "top 644", "user 700"} {
		want = append(want, fmt.Sprintf("%s %d", line, uid))
	}
	if diff := cmp.Diff(want, listing(t, s.Dir())); diff != "" {
		t.Error(diff)
	}
}

// TestNewDirectoryIsNoLink: a link put in the place of a new directory is not followed.
func TestNewDirectoryIsNoLink(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "made"), 0o700))
	must(t, os.Symlink("made", filepath.Join(dir, "link")))
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	defer func() { _ = unix.Close(at) }()
	must(t, sandbox.OpenMade(at, "made"))
	if err := sandbox.OpenMade(at, "link"); !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link was followed: %v", err)
	}
}

// TestNothingIsLeftOfAFailure: if one part cannot be made, the others are removed.
func TestNothingIsLeftOfAFailure(t *testing.T) {
	scratch := sandboxtest.ExecuteDir(t)
	_, err := sandbox.Create(t.Context(), sandbox.Options{
		Execute: filepath.Join(scratch, "no such directory"), Scratch: scratch, PID: 7, Nested: true, Condor: sandbox.Self(), Payload: sandbox.Self(),
	})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	left, err := os.ReadDir(scratch)
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestFileThatCannotBeWritten: it leaves nothing behind, and whatever has its name
// stays.
func TestFileThatCannotBeWritten(t *testing.T) {
	s := own(t, sandbox.Options{})
	must(t, s.WriteFile("taken/file", []byte("x"), 0o600))
	if err := s.WriteFile("taken", []byte("y"), 0o600); err == nil {
		t.Error("a file is in the place of a directory")
	}
	uid := os.Geteuid()
	want := []string{fmt.Sprintf(". 700 %d", uid), fmt.Sprintf("taken 700 %d", uid), fmt.Sprintf("taken/file 600 %d", uid)}
	if diff := cmp.Diff(want, listing(t, s.Scratch())); diff != "" {
		t.Error(diff)
	}
}

// TestTopFileIsReplaced: even a link is replaced, and not followed.
func TestTopFileIsReplaced(t *testing.T) {
	s := own(t, sandbox.Options{Nested: true})
	victim := filepath.Join(t.TempDir(), "victim")
	must(t, os.WriteFile(victim, []byte("mine"), 0o600))
	must(t, os.Symlink(victim, filepath.Join(s.Dir(), "top")))
	for _, text := range []string{"first", "2nd"} {
		path, err := s.WriteTopFile("top", []byte(text), 0o644)
		must(t, err)
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	if got, err := os.ReadFile(victim); err != nil || string(got) != "mine" {
		t.Errorf("the file behind the link has %q, %v", got, err)
	}
}
