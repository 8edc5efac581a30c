package payload

import (
	"fmt"
	"path/filepath"

	"podstarter/internal/filewatch"
)

// socketWatch reports changes in a control directory that may announce a wrapper: a socket
// renamed into place, or touched by a wrapper that is free again.
type socketWatch struct {
	dir string
	// onlyNew leaves out sockets that are touched.
	onlyNew bool
	*filewatch.Watcher
}

func watchSocket(dir string) (*socketWatch, error) {
	w, err := filewatch.New()
	if err != nil {
		return nil, fmt.Errorf("watch control directory %s: %w", dir, err)
	}
	return &socketWatch{dir: filepath.Clean(dir), Watcher: w}, nil
}

// Arm watches the directory, or the nearest one above it that exists. Call it before each
// look at the directory, so that no change between the two is missed.
func (w *socketWatch) Arm() {
	// Repeat until nothing changes: a directory may appear after it was found missing and
	// before the one above is watched.
	for nearest := ""; ; {
		before := nearest
		if nearest = w.armNearest(); nearest == before || nearest == w.dir {
			return
		}
	}
}

// armNearest watches the nearest directory that exists, and returns it. If that is the
// directory itself, the one above is watched too: the directory may be replaced.
func (w *socketWatch) armNearest() string {
	announced := filewatch.Placed | filewatch.Made
	if !w.onlyNew {
		announced |= filewatch.Touched
	}
	for dir := w.dir; ; dir = filepath.Dir(dir) {
		err := w.Add(dir, announced)
		if err == nil && dir == w.dir {
			_ = w.Add(filepath.Dir(dir), announced) // if this fails, the slow poll finds a replaced one
		}
		if err == nil || dir == filepath.Dir(dir) {
			return dir
		}
	}
}
