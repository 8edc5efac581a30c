package payload

import (
	"fmt"
	"path/filepath"

	"podstarter/internal/filewatch"
)

// socketWatch tells of changes in a control directory that may mean that a
// wrapper announces itself: a socket renamed into place, or touched by a
// wrapper that is free again.
type socketWatch struct {
	dir string
	*filewatch.Watcher
}

func watchSocket(dir string) (*socketWatch, error) {
	w, err := filewatch.New()
	if err != nil {
		return nil, fmt.Errorf("watch control directory %s: %w", dir, err)
	}
	return &socketWatch{dir: filepath.Clean(dir), Watcher: w}, nil
}

// Arm watches the directory, or the nearest one above it that exists. To be
// called before each look at the directory, so that nothing goes unseen between
// the two.
func (w *socketWatch) Arm() {
	// A directory that is made after it was found missing and before the one
	// above is watched would go unseen, so once more until nothing changes.
	for nearest := ""; ; {
		before := nearest
		if nearest = w.armNearest(); nearest == before || nearest == w.dir {
			return
		}
	}
}

// armNearest watches the nearest directory that exists, and returns it. If that
// is the directory itself, the one above is watched as well: it may be replaced.
func (w *socketWatch) armNearest() string {
	const announced = filewatch.Placed | filewatch.Made | filewatch.Touched
	for dir := w.dir; ; dir = filepath.Dir(dir) {
		err := w.Add(dir, announced)
		if err == nil && dir == w.dir {
			_ = w.Add(filepath.Dir(dir), announced) // without it, the slow look finds a replaced one
		}
		if err == nil || dir == filepath.Dir(dir) {
			return dir
		}
	}
}
