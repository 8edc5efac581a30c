package podhealth

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openOwn opens a directory that nobody but root and this user can write to.
func openOwn(path string) (*os.Root, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		stat, ok := info.Sys().(*syscall.Stat_t)
		if info.Mode().Perm()&0o022 != 0 || ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
			err = fmt.Errorf("others than root and user %d can write to %s", os.Geteuid(), path)
		}
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// readSmall reads a file that is not longer than limit bytes.
func readSmall(dir *os.Root, name string, limit int64) ([]byte, error) {
	// A pipe in its place must not make anybody wait.
	f, err := dir.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
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

// replaceFile puts a file in place in one step, for readers who take no lock.
func replaceFile(dir *os.Root, name string, data []byte, mode os.FileMode) error {
	temporary := name + "." + rand.Text() // several may be at it, also in one process
	f, err := dir.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode) // whatever the umask
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = dir.Rename(temporary, name)
	}
	if err != nil {
		_ = dir.Remove(temporary)
		return fmt.Errorf("put %s in place: %w", name, err)
	}
	return nil
}
