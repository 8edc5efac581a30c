package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/payload"
)

func newControl(t *testing.T) *control {
	t.Helper()
	c, err := openControl(filepath.Join(t.TempDir(), "control", "payload"), "boot", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.dir.Close() })
	return c
}

// TestExitRecordFollowsNoLink: the wrapper does not write through links in the place of the
// record or of its temporary file.
func TestExitRecordFollowsNoLink(t *testing.T) {
	c := newControl(t)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := payload.ExitRecordName("test")
	for _, link := range []string{name, "." + name + "." + c.boot} {
		if err := os.Symlink(victim, filepath.Join(c.path, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.writeExit(payload.Exit{Activation: "test"}); err == nil {
		t.Error("the record was written through a link")
	}
	if err := os.Remove(filepath.Join(c.path, "."+name+"."+c.boot)); err != nil {
		t.Fatal(err)
	}
	if err := c.writeExit(payload.Exit{Activation: "test"}); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(filepath.Join(c.path, name)); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the record is %v, %v", info, err)
	}
	if got, err := os.ReadFile(victim); err != nil || string(got) != "mine" {
		t.Errorf("the file behind the link has %q, %v", got, err)
	}
}

// TestRecordsOfEarlierRunsGo: complete and temporary records are removed, and nothing else.
func TestRecordsOfEarlierRunsGo(t *testing.T) {
	c := newControl(t)
	for _, name := range []string{payload.ExitRecordName("a"), "." + payload.ExitRecordName("b") + ".boot", payload.SocketName} {
		if err := os.WriteFile(filepath.Join(c.path, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.removeExits()
	if diff := cmp.Diff([]string{payload.SocketName}, namesIn(c.dir)); diff != "" {
		t.Error(diff)
	}
}

// TestControlDirectoryIsNoLink: neither the directory nor the one above it may be a link.
func TestControlDirectoryIsNoLink(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	link := filepath.Join(dir, "link")
	if err := os.MkdirAll(filepath.Join(real, "payload"), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{link: real, filepath.Join(real, "linked"): filepath.Join(real, "payload")} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Join(link, "payload"), filepath.Join(real, "linked")} {
		if c, err := openControl(path, "boot", nil); err == nil {
			c.dir.Close()
			t.Errorf("%s is accepted as the control directory", path)
		}
	}
	c, err := openControl(filepath.Join(real, "payload"), "boot", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.dir.Close()
}
