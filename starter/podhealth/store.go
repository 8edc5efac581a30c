package podhealth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/internal/atomicfile"
)

const (
	healthFile = "health.json"
	healthLock = "health.lock"
	// maxHealthFile leaves room for a rest of every slot.
	maxHealthFile = maxRests*(maxReason+200) + 4096
)

// store keeps the health in a directory that nobody but the starters' user may
// enter.
type store struct{ dir string }

// read gives the health; the zero value if no file is there.
func (s store) read() (Health, error) {
	dir, err := openOwn(s.dir)
	if err != nil {
		return Health{}, fmt.Errorf("read the pod's health in %s: %w", s.dir, err)
	}
	defer dir.Close()
	return s.readIn(dir)
}

func (s store) readIn(dir *os.Root) (Health, error) {
	data, err := readSmall(dir, healthFile, maxHealthFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Health{}, nil
	}
	var h Health
	if err == nil {
		err = json.Unmarshal(data, &h)
	}
	if err != nil {
		return Health{}, fmt.Errorf("read the pod's health in %s: %w", s.dir, err)
	}
	return h.sane(time.Now()), nil
}

// update changes the health under a lock. A file that cannot be read counts as
// good health: the next failure is noted again.
func (s store) update(change func(h Health) Health) error {
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

func (s store) updateIn(dir *os.Root, change func(h Health) Health) error {
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
		return nil // the usual case: most jobs find the pod well and leave it so
	}
	return atomicfile.Replace(dir, healthFile, data, atomicfile.Options{Mode: 0o600})
}
