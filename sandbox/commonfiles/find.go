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

// Catalog is one that was found. It stays readable until Close, but what is in it may be removed
// at any time.
type Catalog struct {
	dir   *os.File
	whole content // what was in it when it was kept
}

// Find looks through the sandboxes of an EXECUTE directory for catalogs with a key. There is
// at least one if there is no error, and more if several data slots keep the same files. A
// name that is not empty asks for exactly these contents.
func Find(execute string, key Key, exactly Name) ([]*Catalog, error) {
	n, err := unix.Open(execute, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("look for common files: %w", &fs.PathError{Op: "open", Path: execute, Err: err})
	}
	dir := os.NewFile(uintptr(n), execute)
	defer dir.Close()
	var found []*Catalog
	err = each(dir, func(name string) error {
		if strings.HasPrefix(name, "dir_") {
			found = append(found, findIn(dir, name, key, exactly)...)
		}
		return nil
	})
	if len(found) == 0 && err == nil {
		err = ErrNone
	}
	if err != nil {
		for _, c := range found {
			c.Close()
		}
		return nil, fmt.Errorf("look for common files in %s: %w", execute, err)
	}
	return found, nil
}

// findIn looks into one sandbox. It may belong to a job, and end at any time.
func findIn(execute *os.File, name string, key Key, exactly Name) (found []*Catalog) {
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
	_ = each(store, func(name string) error {
		suffix, ok := strings.CutPrefix(name, string(key))
		whole, known := parseContent(suffix)
		if !ok || !known || (exactly != "" || whole.digest != "") && name != string(exactly) {
			return nil
		}
		dir, st, err := openDir(store, name)
		if err != nil {
			return nil
		}
		if int(st.Uid) != os.Geteuid() {
			dir.Close()
			return nil
		}
		found = append(found, &Catalog{dir: dir, whole: whole})
		return nil
	})
	return found
}

// Close closes the catalog.
func (c *Catalog) Close() { _ = c.dir.Close() }
