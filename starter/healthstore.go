package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	healthFile = "health.json"
	healthLock = "health.lock"
	// maxHealthFile leaves room for a rest of every slot.
	maxHealthFile = maxRests*(maxHealthReason+200) + 4096
)

// healthStore keeps the pod's health in the private directory, which nobody but
// the starters' user may enter.
type healthStore struct {
	dir     string
	longest time.Duration // of a slot's rest
}

// read gives the health, and a pod in good health if nothing is known.
func (s healthStore) read() (health, error) {
	dir, err := openOwn(s.dir)
	if err != nil {
		return health{}, fmt.Errorf("read the pod's health in %s: %w", s.dir, err)
	}
	defer dir.Close()
	return s.readIn(dir)
}

func (s healthStore) readIn(dir *os.Root) (health, error) {
	data, err := readSmall(dir, healthFile, maxHealthFile)
	if errors.Is(err, fs.ErrNotExist) {
		return health{}, nil
	}
	var h health
	if err == nil {
		err = json.Unmarshal(data, &h)
	}
	if err != nil {
		return health{}, fmt.Errorf("read the pod's health in %s: %w", s.dir, err)
	}
	return h.sane(time.Now()), nil
}

// update changes the health under a lock. A file that cannot be read counts as
// good health: the next failure says it again.
func (s healthStore) update(change func(h health) health) error {
	dir, err := openOwn(s.dir)
	if err == nil {
		defer dir.Close()
		err = s.updateIn(dir, change)
	}
	if err != nil {
		return fmt.Errorf("note the pod's health in %s: %w", s.dir, err)
	}
	return nil
}

func (s healthStore) updateIn(dir *os.Root, change func(h health) health) error {
	lock, err := dir.OpenFile(healthLock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	// Held for the time of a small read and write.
	for {
		if err = unix.Flock(int(lock.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", healthLock, err)
	}
	before, _ := s.readIn(dir)
	data, err := json.Marshal(change(before))
	if err != nil {
		return err
	}
	old, err := readSmall(dir, healthFile, maxHealthFile)
	if err == nil && string(old) == string(data) || errors.Is(err, fs.ErrNotExist) && string(data) == "{}" {
		return nil // the rule: most jobs find the pod well and leave it so
	}
	return replaceFile(dir, healthFile, data, 0o600)
}

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
