// Package privatedir opens the private directory of the pilot container, and keeps
// small files there.
package privatedir

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"syscall"

	"podstarter/internal/atomicfile"
)

// Open opens the private directory after making sure that nobody else may write to it:
// its files decide which image a job gets.
func Open(path string) (*os.Root, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = OwnedByUs(path, info, 0o022)
	}
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return root, nil
}

// OwnedByUs checks that a directory belongs to this user or root and has none of
// the forbidden permission bits.
func OwnedByUs(path string, info os.FileInfo, forbidden os.FileMode) error {
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", path)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d instead of user %d", path, stat.Uid, os.Geteuid())
	}
	if extra := info.Mode().Perm() & forbidden; extra != 0 {
		return fmt.Errorf("%s has mode %#o; remove the permissions %#o", path, info.Mode().Perm(), extra)
	}
	return nil
}

// Read reads a small file of the private directory.
func Read(dir *os.Root, name string, limit int64) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is longer than %d bytes", name, limit)
	}
	return data, err
}

// WriteJSON replaces a file of the private directory in one step. The caller
// holds the lock that belongs to the file.
func WriteJSON(dir *os.Root, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	o := atomicfile.Options{Mode: 0o600, Temporary: name + ".new"} // the lock admits one writer
	if err := atomicfile.Replace(dir, name, data, o); err != nil {
		return fmt.Errorf("put %s in place: %w", name, err)
	}
	return nil
}
