package payload

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"podstarter/rescue"
)

// socketWatch tells of changes in a control directory that may mean that a
// wrapper announces itself: a socket renamed into place, or touched by a
// wrapper that is free again.
type socketWatch struct {
	dir    string
	file   *os.File
	events chan struct{}
}

func watchSocket(dir string) (*socketWatch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch control directory %s: %w; is fs.inotify.max_user_instances exhausted?", dir, err)
	}
	w := &socketWatch{dir: filepath.Clean(dir), file: os.NewFile(uintptr(fd), "inotify"), events: make(chan struct{}, 1)}
	rescue.Go(w.read)
	return w, nil
}

// Arm watches the directory, or the nearest one above it that exists. To be
// called before each look at the directory, so that nothing goes unseen between
// the two.
func (w *socketWatch) Arm() {
	sys, err := w.file.SyscallConn()
	if err != nil {
		return
	}
	_ = sys.Control(func(fd uintptr) {
		// A directory that is made after it was found missing and before the one
		// above is watched would go unseen, so once more until nothing changes.
		for nearest := ""; ; {
			before := nearest
			if nearest = w.armNearest(int(fd)); nearest == before || nearest == w.dir {
				return
			}
		}
	})
}

// armNearest watches the nearest directory that exists, and returns it. If that
// is the directory itself, the one above is watched as well: it may be replaced.
func (w *socketWatch) armNearest(fd int) string {
	const mask = unix.IN_MOVED_TO | unix.IN_CREATE | unix.IN_ATTRIB | unix.IN_ONLYDIR
	for dir := w.dir; ; dir = filepath.Dir(dir) {
		_, err := unix.InotifyAddWatch(fd, dir, mask)
		if err == nil && dir == w.dir {
			_, _ = unix.InotifyAddWatch(fd, filepath.Dir(dir), mask)
		}
		if err == nil || dir == filepath.Dir(dir) {
			return dir
		}
	}
}

// Events has a value after something happened.
func (w *socketWatch) Events() <-chan struct{} { return w.events }

// Close ends the watch.
func (w *socketWatch) Close() { _ = w.file.Close() }

// read throws the events themselves away: the look that follows sees more.
func (w *socketWatch) read() {
	buffer := make([]byte, 4096)
	for {
		if _, err := w.file.Read(buffer); err != nil {
			return
		}
		select {
		case w.events <- struct{}{}:
		default:
		}
	}
}
