package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// shared makes a directory like /dev/shm.
func shared(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	base, err := os.MkdirTemp("/dev/shm", "shared")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if err := os.Chmod(base, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	return base
}

// Users of the tests.
const mine, theirs = 54321, 54322

// TestRemoveAmongOthers: what only others can remove is not a failure, frees its name for
// the next job, and is removed with their leftovers.
func TestRemoveAmongOthers(t *testing.T) {
	base := shared(t)
	for _, d := range []struct {
		path string
		mode os.FileMode
		uid  int
	}{
		{"x", 0o777, mine},
		{"x/theirs", 0o700, theirs},
		{"x/theirs/in", 0o700, theirs},
		{"x/empty", 0o700, theirs},
		{"x/a", 0o777, mine},
		{"x/a/b", 0o777, mine},
		{"x/a/b/theirs", 0o777, theirs},
		{"x/a/b/theirs/mine", 0o700, mine}, // nested alternately
		{"x/a/b/theirs/mine/in", 0o700, mine},
		{"sticky", 0o777 | os.ModeSticky, mine},
		{"sticky/theirs", 0o755, theirs},
		{"sticky/theirs/in", 0o755, theirs},
		{"theirs", 0o755, theirs},
	} {
		path := filepath.Join(base, d.path)
		if err := errors.Join(os.Mkdir(path, 0), os.Chmod(path, d.mode), os.Chown(path, d.uid, d.uid)); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(uid int) (left []string) {
		t.Helper()
		if err := asPayload(uid, uid, func() error { return removeIn([]string{base}, uid, true) }); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(base)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := e.Name()
			if strings.HasPrefix(name, asidePrefix) {
				name = name[:len(asidePrefix+"54321")] // the rest is random
			}
			left = append(left, name)
		}
		return left
	}
	const aside, others = asidePrefix + "54321", asidePrefix + "54322"
	for i, step := range []struct {
		uid  int
		left []string
	}{
		{mine, []string{aside, aside, aside, "theirs"}},
		{mine, []string{aside, aside, aside, "theirs"}},
		{theirs, []string{aside, aside, aside, others}},
		{mine, []string{others}},
		{theirs, nil},
	} {
		if diff := cmp.Diff(step.left, remove(step.uid)); diff != "" {
			t.Errorf("after removal %d, of user %d's:\n%s", i+1, step.uid, diff)
		}
	}
}

// TestRemoveInSteps: entries that stay in a directory do not slow down each step into a
// deep tree.
func TestRemoveInSteps(t *testing.T) {
	const stay, deep = 500, 2000
	const most = 10 * (stay + deep)
	base := shared(t)
	at, err := unix.Open(base, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	below := func(name string, uid int) {
		t.Helper()
		err := unix.Mkdirat(at, name, 0o700)
		if err == nil {
			err = unix.Fchownat(at, name, uid, uid, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	down := func(name string) {
		t.Helper()
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(at)
		at = next
	}
	below("x", mine)
	down("x")
	for i := range stay {
		below(fmt.Sprintf("theirs%d", i), theirs)
		below(fmt.Sprintf("theirs%d/in", i), theirs)
	}
	for range deep {
		below("d", mine)
		down("d")
	}
	_ = unix.Close(at)
	err = asPayload(mine, mine, func() error {
		d, err := openDirectoryAt(unix.AT_FDCWD, base)
		if err != nil {
			return err
		}
		defer d.close()
		r := newRemover(d, mine, true)
		if r.all(); r.steps > most {
			t.Errorf("%d nested directories and %d that stay took %d steps", deep, stay, r.steps)
		}
		return errors.Join(r.errs...)
	})
	if err != nil {
		t.Error(err)
	}
	aside, err := filepath.Glob(filepath.Join(base, asidePrefix+"*"))
	if err != nil || len(aside) != 1 {
		t.Fatalf("put aside: %v, %v", aside, err)
	}
	left, err := os.ReadDir(aside[0])
	if err != nil || len(left) != stay {
		t.Errorf("%d are left of %d, %v", len(left), stay, err)
	}
}

// TestClosedToOthers: once the removal works in a directory, nobody else can create
// anything there, even through a descriptor opened before.
func TestClosedToOthers(t *testing.T) {
	base := shared(t)
	x := filepath.Join(base, "x")
	if err := errors.Join(os.Mkdir(x, 0), os.Chmod(x, 0o777), os.Chown(x, mine, mine)); err != nil {
		t.Fatal(err)
	}
	held := -1
	as := func(uid int, do func() error) {
		t.Helper()
		if err := asPayload(uid, uid, do); err != nil {
			t.Fatal(err)
		}
	}
	as(theirs, func() (err error) {
		held, err = unix.Open(x, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	defer func() { _ = unix.Close(held) }()
	as(theirs, func() error { return unix.Mkdirat(held, "before", 0o700) })
	as(mine, func() error {
		d, err := openDirectoryAt(unix.AT_FDCWD, base)
		if err != nil {
			return err
		}
		defer d.close()
		entered, err := newRemover(d, mine, true).enter(d, "x")
		if err == nil {
			entered.close()
		}
		return err
	})
	as(theirs, func() error {
		if err := unix.Mkdirat(held, "after", 0o700); !errors.Is(err, unix.EACCES) {
			t.Errorf("another user makes a directory in it: %v, want %v", err, unix.EACCES)
		}
		return nil
	})
}
