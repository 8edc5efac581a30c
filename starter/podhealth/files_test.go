package podhealth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOnlyOwnDirectories: what is read in a directory that anybody else can write to is not
// believed.
func TestOnlyOwnDirectories(t *testing.T) {
	for mode, own := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o775: false, 0o757: false, 0o702: false, 0o720: false, 0o777: false} {
		dir := filepath.Join(t.TempDir(), "state")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		root, err := openOwn(dir)
		if own != (err == nil) {
			t.Errorf("mode %o: %v", mode, err)
		}
		if err == nil {
			root.Close()
		}
	}
}

// TestSmallFiles: a file may be as long as the limit, and no longer.
func TestSmallFiles(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const limit = 10
	for length, fits := range map[int]bool{0: true, limit - 1: true, limit: true, limit + 1: false, 5 * limit: false} {
		text := strings.Repeat("x", length)
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		data, err := readSmall(root, "file", limit)
		if fits != (err == nil) || fits && string(data) != text {
			t.Errorf("%d bytes: %q, %v", length, data, err)
		}
	}
}
