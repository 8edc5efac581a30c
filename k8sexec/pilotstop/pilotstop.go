// Package pilotstop passes on that the pilot is being stopped, from the preStop hook of its
// container to the starters. When a pod ends, the kubelet tells its own containers at once,
// and sidecars only when those are gone (kuberuntime_container.go:killContainersWithSyncResult).
// A startd that is told lets jobs retire first, which may take longer than the pod has, and
// condor_master tells no other daemon before the startd has ended.
package pilotstop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"podstarter/internal/atomicfile"
	"podstarter/internal/filewatch"
	"podstarter/k8sexec/privatedir"
)

const (
	// directory is one of its own, so that other files wake nobody up.
	directory = "pilot-stop"
	notice    = "told"
)

// Announce leaves the notice in a private directory.
func Announce(private string) error {
	dir, err := open(private)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := atomicfile.Replace(dir, notice, nil, atomicfile.Options{Mode: 0o600}); err != nil {
		return fmt.Errorf("tell starters that the pilot is being stopped: %w", err)
	}
	return nil
}

// Withdraw removes the notice that an earlier pilot of the same pod was stopped.
func Withdraw(private string) error {
	dir, err := open(private)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Remove(notice); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the notice of a pilot that was stopped: %w", err)
	}
	return nil
}

// Watch waits for the notice.
type Watch struct {
	watcher *filewatch.Watcher
	dir     string
}

// NewWatch begins to watch a private directory. The watch must be closed.
func NewWatch(private string) (*Watch, error) {
	dir, err := open(private)
	if err != nil {
		return nil, err
	}
	_ = dir.Close()
	w := &Watch{dir: filepath.Join(private, directory)}
	if w.watcher, err = filewatch.New(); err != nil {
		return nil, err
	}
	if err := w.watcher.Add(w.dir, filewatch.Placed); err != nil {
		w.watcher.Close()
		return nil, err
	}
	return w, nil
}

// Changed gets a value when the notice may be there.
func (w *Watch) Changed() <-chan struct{} { return w.watcher.Events() }

// Told says whether the notice is there.
func (w *Watch) Told() bool {
	_, err := os.Lstat(filepath.Join(w.dir, notice))
	return err == nil
}

// Close ends the watch, and Changed is closed.
func (w *Watch) Close() { w.watcher.Close() }

// open opens the directory of the notice, which whoever comes first makes.
func open(private string) (*os.Root, error) {
	outer, err := privatedir.Open(private)
	if err != nil {
		return nil, err
	}
	defer outer.Close()
	if err := outer.Mkdir(directory, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the directory in which starters learn that the pilot is being stopped: %w", err)
	}
	return outer.OpenRoot(directory)
}
