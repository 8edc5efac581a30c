package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/k8sexec/privatedir"
)

const (
	subdirectory = "journal"
	eventsFile   = "events"
	oldFile      = "events.old" // the one before; only its end may not have been read
	lockFile     = "lock"

	// maxLine is the longest line in bytes. Calls take most of it.
	maxLine = 4096
	// maxFile is how long the file gets if nobody reads it, in bytes.
	maxFile = 1 << 20
)

// ErrFull says that nobody has read the journal for long.
var ErrFull = errors.New("the journal is full; does `condor_pod_starter -keep` run?")

// Journal is the file of a pod.
type Journal struct {
	StateDir string // see podhealth.Pod
}

// Write appends an event. It takes the time of a small write to a local file.
func (j Journal) Write(e Event) error {
	if err := j.write(e); err != nil {
		return fmt.Errorf("note %q for the operator in %s: %w", e.Kind, j.StateDir, err)
	}
	return nil
}

func (j Journal) write(e Event) error {
	e = e.clean()
	e.PID, e.Time = os.Getpid(), time.Now()
	line, err := encode(e)
	if err != nil {
		return err
	}
	dir, err := j.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	f, err := dir.OpenFile(eventsFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size()+int64(len(line)) > maxFile {
		return ErrFull
	}
	_, err = f.Write(line)
	return err
}

// encode gives the line of a clean event.
func encode(e Event) ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // six bytes for one would be more than a line has
	if err := enc.Encode(e); err != nil {
		return nil, err
	}
	if line.Len() > maxLine {
		return nil, fmt.Errorf("%d bytes are more than a line may have", line.Len())
	}
	return line.Bytes(), nil
}

// open gives the directory of the journal, and makes it if need be.
func (j Journal) open() (*os.Root, error) {
	state, err := privatedir.Open(j.StateDir)
	if err != nil {
		return nil, err
	}
	defer state.Close()
	if err := state.Mkdir(subdirectory, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return state.OpenRoot(subdirectory)
}

// lock keeps other writers out, and the reader when it begins a new file. It is held for the
// time of a small write.
func lock(dir *os.Root) (unlock func(), err error) {
	f, err := dir.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", lockFile, err)
	}
	return func() { _ = f.Close() }, nil
}
