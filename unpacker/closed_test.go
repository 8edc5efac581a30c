package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/sandbox"
	"podstarter/unpacker/tarstream"
	"podstarter/unpacker/tree"
)

// TestClosed: what the program's user may not read is there and empty, and a file is closed, as it
// would be for a job that runs in the directory itself.
func TestClosed(t *testing.T) {
	dir := t.TempDir()
	owner := sandbox.Self()
	if os.Getuid() == 0 {
		owner = sandbox.Owner{UID: 10001, GID: 10001}
	}
	for name, mode := range map[string]os.FileMode{"closed": 0, "open": 0o644, "hard": 0} {
		if err := errors.Join(os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o600), os.Chmod(filepath.Join(dir, name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	inner := filepath.Join(dir, "secrets")
	if err := errors.Join(os.Mkdir(inner, 0o700), os.WriteFile(filepath.Join(inner, "file"), []byte("secret"), 0o644), os.Link(filepath.Join(dir, "hard"), filepath.Join(dir, "link")), os.Chmod(inner, 0), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(inner, 0o700) })
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out bytes.Buffer
	if err := owner.Do(func() error {
		w := tarstream.New(&out, tarstream.Bounds{Bytes: 1 << 20, Entries: 100, Depth: 10, Target: 100})
		return errors.Join(tree.Walk(int(f.Fd()), w), w.Close())
	}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for in := tar.NewReader(&out); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%c %04o %s %d", h.Typeflag, h.Mode, h.Name, h.Size))
	}
	want := []string{"0 0000 closed 0", "0 0000 hard 0", "0 0000 link 0", "0 0644 open 4", "5 0755 secrets/ 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
