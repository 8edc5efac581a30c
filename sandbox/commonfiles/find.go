package commonfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNone is found (errors.Is) in the error of Find when no data slot has the catalog.
var ErrNone = errors.New("no data slot of this execution point has these common files")

// Catalog is one that was found. It stays readable until Close, even when its data slot ends.
type Catalog struct{ dir *os.File }

// Find looks through the sandboxes of an EXECUTE directory for a catalog.
func Find(execute string, key Key) (*Catalog, error) {
	n, err := unix.Open(execute, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("look for common files: %w", &fs.PathError{Op: "open", Path: execute, Err: err})
	}
	dir := os.NewFile(uintptr(n), execute)
	defer dir.Close()
	var found *Catalog
	err = each(dir, func(name string) error {
		if strings.HasPrefix(name, "dir_") && found == nil {
			found = findIn(dir, name, key)
		}
		return nil
	})
	if found == nil && err == nil {
		err = ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("look for common files in %s: %w", execute, err)
	}
	return found, nil
}

// findIn looks into one sandbox; nil if the catalog is not there. A sandbox may belong to a job,
// and end at any time.
func findIn(execute *os.File, name string, key Key) *Catalog {
	top, _, err := openDir(execute, name)
	if err != nil {
		return nil
	}
	defer top.Close()
	store, err := openStore(top)
	if err != nil {
		return nil
	}
	defer store.Close()
	dir, st, err := openDir(store, string(key))
	if err != nil {
		return nil
	}
	if int(st.Uid) != os.Geteuid() {
		dir.Close()
		return nil
	}
	return &Catalog{dir: dir}
}

// Close closes the catalog.
func (c *Catalog) Close() { _ = c.dir.Close() }
