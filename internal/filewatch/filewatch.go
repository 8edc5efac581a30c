// Package filewatch reports that files of directories have changed (inotify(7)). It
// does not report what changed: the caller looks again, and sees several changes at
// once as one. The kernel gives each user a number of watchers, whatever containers they are
// in; if others have taken them all, changes are reported by the clock (timerfd_create(2)),
// whether there are any or not.
package filewatch

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/rescue"
)

// Change is what may happen to a file of a directory; several are joined by |.
type Change uint32

const (
	Made    Change = unix.IN_CREATE                       // a name appears
	Placed  Change = unix.IN_MOVED_TO                     // a file is renamed to its name, as atomicfile does
	Touched Change = unix.IN_ATTRIB                       // its times, mode or owner change
	Written Change = unix.IN_MODIFY | unix.IN_CLOSE_WRITE // its contents change
)

// Watcher watches any number of directories. Its methods may be called from any
// goroutine.
type Watcher struct {
	mu     sync.Mutex
	fd     int           // -1 after Close
	clock  bool          // fd is a timer
	file   *os.File      // the same, for the goroutine that reads it; nil while there is none
	events chan struct{} // nil until Events is called
}

// turn is how often a watcher by the clock reports changes.
const turn = 500 * time.Millisecond

// New returns a watcher without a directory. It must be closed.
func New() (*Watcher, error) { return newWatcher(unix.InotifyInit1) }

func newWatcher(inotify func(flags int) (int, error)) (*Watcher, error) {
	fd, err := inotify(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if errors.Is(err, unix.EMFILE) { // fs.inotify.max_user_instances
		return byClock()
	}
	if err != nil {
		return nil, fmt.Errorf("ask the kernel for changes of files (inotify_init1): %w", err)
	}
	return &Watcher{fd: fd}, nil
}

func byClock() (*Watcher, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make a timer to look for changes of files, as fs.inotify.max_user_instances is exhausted (timerfd_create): %w", err)
	}
	each := unix.NsecToTimespec(turn.Nanoseconds())
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: each, Value: each}, nil); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("set a timer to look for changes of files (timerfd_settime): %w", err)
	}
	return &Watcher{fd: fd, clock: true}, nil
}

// Add also watches a directory. For a directory that is watched already, the new
// changes replace the old ones.
func (w *Watcher) Add(dir string, what Change) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := os.ErrClosed
	switch {
	case w.fd >= 0 && w.clock:
		err = isDirectory(dir)
	case w.fd >= 0:
		_, err = unix.InotifyAddWatch(w.fd, dir, uint32(what)|unix.IN_ONLYDIR)
	}
	if errors.Is(err, unix.ENOSPC) {
		err = fmt.Errorf("%w; is fs.inotify.max_user_watches exhausted?", err)
	}
	if err != nil {
		return fmt.Errorf("watch the directory %s (inotify_add_watch): %w", dir, err)
	}
	return nil
}

// isDirectory fails as inotify_add_watch(2) does.
func isDirectory(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = unix.ENOTDIR
	}
	return err
}

// Events gets one value after any number of changes, and is closed after Close.
func (w *Watcher) Events() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.events != nil {
		return w.events
	}
	w.events = make(chan struct{}, 1)
	if w.fd < 0 {
		close(w.events)
		return w.events
	}
	// A non-blocking descriptor is read through the runtime's poller, so closing it
	// ends a read.
	file, events := os.NewFile(uintptr(w.fd), "inotify"), w.events
	w.file = file
	rescue.Go(func() { tell(file, events) })
	return w.events
}

func tell(from *os.File, events chan<- struct{}) {
	defer close(events)
	buffer := make([]byte, 4096)
	for {
		if _, err := from.Read(buffer); err != nil {
			return
		}
		select {
		case events <- struct{}{}:
		default:
		}
	}
}

// FD is a descriptor for poll(2), for callers that cannot afford a goroutine for
// Events: it is readable after a change. Then call Drain. Do not use it together
// with Events.
func (w *Watcher) FD() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fd
}

// Drain discards the changes up to now.
func (w *Watcher) Drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	buffer := make([]byte, 4096)
	for w.fd >= 0 {
		if n, err := unix.Read(w.fd, buffer); n <= 0 || err != nil {
			return
		}
	}
}

// Close stops watching. It may take the kernel some 15 ms (an SRCU grace period).
func (w *Watcher) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.file != nil:
		_ = w.file.Close()
	case w.fd >= 0:
		_ = unix.Close(w.fd)
	}
	w.fd, w.file = -1, nil
}
