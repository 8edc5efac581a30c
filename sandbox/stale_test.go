package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/sandbox"
	"podstarter/sandbox/sandboxtest"
)

// TestRemoveStale: sandboxes of the same user go, in both layouts, whatever is in
// them; everything else stays.
func TestRemoveStale(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	ctx := t.Context()
	execute := sandboxtest.ExecuteDir(t)
	const other = sandboxtest.PayloadUID + 1
	lay := func(pid, uid int, nested bool) *sandbox.Sandbox {
		t.Helper()
		s, err := sandbox.Create(ctx, sandbox.Options{Execute: execute, PID: pid, Nested: nested,
			Condor: sandbox.Owner{UID: sandboxtest.CondorUID, GID: sandboxtest.CondorUID}, Payload: sandbox.Owner{UID: uid, GID: uid}})
		must(t, err)
		must(t, os.WriteFile(filepath.Join(s.Scratch(), "file"), nil, 0))
		return s
	}
	lay(11, sandboxtest.PayloadUID, false)
	lay(12, sandboxtest.PayloadUID, true)
	lay(21, other, false)
	lay(22, other, true)
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
	must(t, os.Chown(outside, sandboxtest.PayloadUID, sandboxtest.PayloadUID))
	must(t, os.Symlink(outside, filepath.Join(execute, "dir_31")))
	must(t, os.Mkdir(filepath.Join(execute, "spool"), 0o700))
	must(t, os.Chown(filepath.Join(execute, "spool"), sandboxtest.PayloadUID, sandboxtest.PayloadUID))
	own := lay(1, sandboxtest.PayloadUID, false)

	removed, err := own.RemoveStale(ctx)
	must(t, err)
	slices.Sort(removed)
	if diff := cmp.Diff([]string{"dir_11", "dir_12"}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	entries, err := os.ReadDir(execute)
	must(t, err)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"dir_1", "dir_21", "dir_22", "dir_31", "spool"}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if _, err := os.Lstat(filepath.Join(own.Scratch(), "file")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(outside, "kept")); err != nil {
		t.Error(err)
	}
}
