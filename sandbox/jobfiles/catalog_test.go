package jobfiles

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
)

// TestCommonFilesAreUnchanged: links that other jobs make and remove change the time of the inode, and no contents.
func TestCommonFilesAreUnchanged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: common files belong to it")
	}
	dir := t.TempDir()
	shared := filepath.Join(dir, "shared")
	must(t, os.WriteFile(shared, []byte("common"), 0o444))
	root, err := beneath.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	before, err := TakeCatalog(t.Context(), root)
	must(t, err)
	other := filepath.Join(t.TempDir(), "other")
	must(t, os.Link(shared, other))
	must(t, os.Remove(other))
	var st unix.Stat_t
	must(t, unix.Stat(shared, &st))
	if known, same := before.look("shared", &st); !known || !same {
		t.Errorf("known: %v, unchanged: %v", known, same)
	}
	// Another file in its place is a change.
	must(t, os.Rename(shared, other))
	must(t, os.WriteFile(shared, []byte("mine!!"), 0o444))
	must(t, unix.Stat(shared, &st))
	if _, same := before.look("shared", &st); same {
		t.Error("another file counts as unchanged")
	}
}
