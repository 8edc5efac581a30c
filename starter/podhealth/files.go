package podhealth

import (
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
