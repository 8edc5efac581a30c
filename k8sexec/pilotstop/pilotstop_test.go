package pilotstop

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func watch(t *testing.T, dir string) *Watch {
	t.Helper()
	w, err := NewWatch(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func TestAnnounce(t *testing.T) {
	dir := t.TempDir()
	before := watch(t, dir)
	if before.Told() {
		t.Error("told before anybody was")
	}
	// Files of the private directory itself wake nobody up.
	if err := os.WriteFile(filepath.Join(dir, "slot.payload.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Announce(dir); err != nil {
		t.Fatal(err)
	}
	select {
	case <-before.Changed():
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
	}
	if !before.Told() {
		t.Error("not told")
	}
	if late := watch(t, dir); !late.Told() {
		t.Error("one that came late is not told")
	}
	for range 2 { // the second time there is nothing
		if err := Withdraw(dir); err != nil {
			t.Fatal(err)
		}
	}
	if watch(t, dir).Told() {
		t.Error("the next pilot's starters are told as well")
	}
}

// TestHostileDirectory: somebody who can write to the directory must not redirect root.
func TestHostileDirectory(t *testing.T) {
	t.Run("link", func(t *testing.T) {
		dir, elsewhere := t.TempDir(), t.TempDir()
		if err := os.Symlink(elsewhere, filepath.Join(dir, directory)); err != nil {
			t.Fatal(err)
		}
		if err := Announce(dir); err == nil {
			t.Error("a link out of the private directory is followed")
		}
	})
	t.Run("mode", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := Announce(dir); err == nil {
			t.Error("a private directory that others may write to is used")
		}
		if _, err := NewWatch(dir); err == nil {
			t.Error("a private directory that others may write to is watched")
		}
	})
	t.Run("none", func(t *testing.T) {
		if err := Withdraw(filepath.Join(t.TempDir(), "missing")); err == nil {
			t.Error("no error without a private directory")
		}
	})
}
