package localexec_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"podstarter/wrapper/agent/agenttest"
)

// TestReleaseFreesUser: a user ID is free when its lease is released, also if another
// goroutine starts a program just then. Between fork and exec that program's process has
// every file of this one, so the lock as well.
func TestReleaseFreesUser(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("without root no user ID is locked")
	}
	b := newBackend(t, 1)
	l := lease(t, b)
	fork(t, ".lock")
	if err := l.Release(agenttest.Context(t)); err != nil {
		t.Fatal(err)
	}
	lease(t, b)
}

// fork keeps this process's open files of that ending as a process that was forked does
// which has not yet executed its program.
func fork(t *testing.T, ending string) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range open {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if err != nil || !strings.HasSuffix(target, ending) {
			continue
		}
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		kept, err := syscall.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(kept) })
		found = true
	}
	if !found {
		t.Fatalf("no open file ends in %s", ending)
	}
}
