package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// TestStrayDirectories: what a container runtime has made where a link of an image
// led a mount keeps no wrapper from announcing itself, however deep it is, and
// nothing of it stays.
func TestStrayDirectories(t *testing.T) {
	dir := filepath.Join(agenttest.PublicDir(t), "control", "payload")
	const deep = 1500 // more than may be open at once, in one path
	for _, stray := range []string{payload.SocketName + strings.Repeat("/d", deep), payload.ExitRecordName("a") + "/x/y", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, stray), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "other", "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	agenttest.StartWrapper(t, nil) // one of another container does not mind
	agenttest.StartWrapperIn(t, dir, nil).Dial(t)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			t.Errorf("%s is still there", e.Name())
		}
	}
}

// TestStrayMount: what is mounted in the place of a stray is left alone.
func TestStrayMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount")
	}
	dir := filepath.Join(agenttest.PublicDir(t), "control", "payload")
	volume := agenttest.PublicDir(t)
	kept := filepath.Join(volume, "of", "others")
	at := filepath.Join(dir, "stray", "below")
	for _, d := range []string{kept, at} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(volume, at, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	mounted := at
	t.Cleanup(func() {
		// It may have been moved with what it is in.
		found, _ := filepath.Glob(filepath.Join(dir, ".stray.*", "below"))
		for _, m := range append(found, mounted) {
			_ = unix.Unmount(m, unix.MNT_DETACH)
		}
	})
	agenttest.StartWrapperIn(t, dir, nil).Dial(t)
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what is mounted was emptied: %v", err)
	}
}
