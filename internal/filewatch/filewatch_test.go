package filewatch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func watcher(t *testing.T, dir string, what Change) *Watcher {
	t.Helper()
	w, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	if err := w.Add(dir, what); err != nil {
		t.Fatal(err)
	}
	return w
}

// readable asks poll(2), without waiting.
func readable(t *testing.T, w *Watcher) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(w.FD()), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, 0); err != nil {
		t.Fatal(err)
	}
	return fds[0].Revents&unix.POLLIN != 0
}

// TestChanges: a watcher reports the changes that it was asked for, and no others.
func TestChanges(t *testing.T) {
	for name, change := range map[Change]func(dir string) error{
		Made:    func(dir string) error { return os.Mkdir(dir+"/new", 0o700) },
		Placed:  func(dir string) error { return os.Rename(filepath.Dir(dir)+"/beside", dir+"/old") },
		Touched: func(dir string) error { return os.Chmod(dir+"/old", 0o640) },
		Written: func(dir string) error { return os.Truncate(dir+"/old", 1) },
	} {
		for _, asked := range []Change{Made, Placed, Touched, Written, Made | Placed | Touched | Written} {
			dir := t.TempDir() + "/watched"
			if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(dir+"/old", nil, 0o600), os.WriteFile(filepath.Dir(dir)+"/beside", nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			w := watcher(t, dir, asked)
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			if got, want := readable(t, w), asked&name != 0; got != want {
				t.Errorf("change %#x, asked for %#x: reported %t, want %t", name, asked, got, want)
			}
			w.Drain()
			if readable(t, w) {
				t.Errorf("change %#x, asked for %#x: reported again", name, asked)
			}
		}
	}
}

// TestEvents: changes before anybody listens are reported, and no number of changes
// makes the watcher wait for its listener.
func TestEvents(t *testing.T) {
	dir, second := t.TempDir(), t.TempDir()
	w := watcher(t, dir, Made)
	if err := w.Add(second, Made); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, second} {
		if err := os.WriteFile(d+"/f", nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		f, err := os.CreateTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	<-w.Events()
	w.Close()
	for range w.Events() { // until it is closed
	}
	if err := w.Add(dir, Made); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Add after Close: %v", err)
	}
	if fd := w.FD(); fd != -1 {
		t.Errorf("descriptor %d after Close", fd)
	}
	w.Drain()
	w.Close()
}

// TestSecondDirectory: each of the directories is watched.
func TestSecondDirectory(t *testing.T) {
	dir := t.TempDir()
	w := watcher(t, t.TempDir(), Made)
	if err := w.Add(dir, Made); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/f", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-w.Events()
}

func TestClosedBeforeEvents(t *testing.T) {
	w := watcher(t, t.TempDir(), Made)
	w.Close()
	if _, open := <-w.Events(); open {
		t.Error("an event of a closed watcher")
	}
}

func TestNotADirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/f", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := watcher(t, dir, Made)
	for path, want := range map[string]error{dir + "/f": unix.ENOTDIR, dir + "/absent": unix.ENOENT} {
		if err := w.Add(path, Made); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}

// TestWithoutInstances: when other processes of the user have all watchers of the kernel, one
// reports changes by the clock.
func TestWithoutInstances(t *testing.T) {
	none := func(int) (int, error) { return -1, unix.EMFILE }
	w, err := newWatcher(none)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	dir := t.TempDir()
	if err := w.Add(dir, Made); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(dir+"/none", Made); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(dir+"/file", Made); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a file: %v", err)
	}
	for range 2 {
		fds := []unix.PollFd{{Fd: int32(w.FD()), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, 30_000); n != 1 || err != nil {
			t.Fatalf("poll: %d, %v", n, err)
		}
		w.Drain()
	}
	events := w.Events()
	for range 2 {
		<-events
	}
	w.Close()
	for range events { // until it is closed
	}
}

func TestOtherErrorsOfTheKernel(t *testing.T) {
	if _, err := newWatcher(func(int) (int, error) { return -1, unix.ENOMEM }); !errors.Is(err, unix.ENOMEM) {
		t.Errorf("got %v", err)
	}
}
