package imagetree

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTemporaryDirectories(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(dir string) error
		want string // modes of tmp and var/tmp; "-" for none
	}{
		"none": {func(string) error { return nil }, "dtrwxrwxrwx -"},
		"of the image": {func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, "var/tmp"), 0o755)
		}, "dtrwxrwxrwx dtrwxrwxrwx"},
		"links": {func(dir string) error {
			for _, d := range []string{"var", "other"} {
				if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
					return err
				}
			}
			if err := os.Symlink("other", filepath.Join(dir, "tmp")); err != nil {
				return err
			}
			return os.Symlink("../other", filepath.Join(dir, "var/tmp"))
		}, "Lrwxrwxrwx Lrwxrwxrwx"},
		"a linked parent": {func(dir string) error {
			if err := os.Mkdir(filepath.Join(dir, "other"), 0o755); err != nil {
				return err
			}
			return os.Symlink("other", filepath.Join(dir, "var"))
		}, "dtrwxrwxrwx -"},
		"a file": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "tmp"), nil, 0o644)
		}, "-rw-r--r-- -"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, tt.make(dir))
			root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
			must(t, err)
			defer func() { _ = unix.Close(root) }()
			must(t, Order{}.finish(root))
			got := ""
			for _, path := range []string{"tmp", "var/tmp"} {
				mode := "-"
				if info, err := os.Lstat(filepath.Join(dir, path)); err == nil {
					mode = info.Mode().String()
				}
				got += mode + " "
			}
			if got != tt.want+" " {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if info, err := os.Stat(filepath.Join(dir, "other")); err == nil && info.Mode().Perm() != 0o755 {
				t.Errorf("what a link leads to has the mode %s", info.Mode())
			}
		})
	}
}
