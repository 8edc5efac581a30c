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

// TestStrayDirectories: if an image's link redirected a mount, the directories that the
// container runtime made do not keep a wrapper from announcing itself, however deep they
// are, and all are removed.
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
	agenttest.StartWrapper(t, nil) // the wrapper of another container, not disturbed
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

// TestStrayMount: a mount in the place of a stray directory is left alone.
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
		// It may have moved with the directory above it.
		found, _ := filepath.Glob(filepath.Join(dir, ".stray.*", "below"))
		for _, m := range append(found, mounted) {
			_ = unix.Unmount(m, unix.MNT_DETACH)
		}
	})
	agenttest.StartWrapperIn(t, dir, nil).Dial(t)
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the mounted volume was emptied: %v", err)
	}
}
