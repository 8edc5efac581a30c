package jobfiles

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
)

// View is where names of output are looked up: in the sandbox. If the job runs beside
// the starter and not in a container, it is the whole file system, with the rights of
// the job's user, as in HTCondor.
type View struct {
	Root    *beneath.Root
	Outside *beneath.Root // at "/"; nil: names may not lead out of the sandbox
}

// try calls look with the root and the name to use there.
func (v View) try(name string, look func(r *beneath.Root, name string) error) error {
	err := look(v.Root, name)
	switch {
	case !errors.Is(err, beneath.ErrOutside):
		return err
	case v.Outside == nil && v.namesOutside(name):
		// Unlike a link that leads out, no such thing is in the sandbox.
		return fmt.Errorf("%w: %w", unix.ENOENT, err)
	case v.Outside == nil:
		return err
	}
	if !strings.HasPrefix(name, "/") {
		name = v.Root.Path() + "/" + name
	}
	return look(v.Outside, name)
}

// namesOutside reports whether the name itself, without any links, leads out of the
// sandbox.
func (v View) namesOutside(name string) bool {
	if strings.HasPrefix(name, "/") {
		rel, ok := v.Root.Rel(name)
		if !ok {
			return true
		}
		name = rel
	}
	depth := 0
	for step := range strings.SplitSeq(name, "/") {
		switch step {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return true
			}
		default:
			depth++
		}
	}
	return false
}

func (v View) lstat(name string) (st unix.Stat_t, err error) {
	trimmed := strings.TrimRight(name, "/")
	if trimmed == "" {
		trimmed = name
	}
	err = v.try(trimmed, func(r *beneath.Root, name string) error {
		st, err = r.Lstat(name)
		return err
	})
	return st, err
}

// Stat is stat(2): it follows links.
func (v View) Stat(name string) (st unix.Stat_t, err error) {
	err = v.try(name, func(r *beneath.Root, name string) error {
		st, err = r.Stat(name)
		return err
	})
	return st, err
}

func (v View) readDir(name string) (d *beneath.Dir, err error) {
	err = v.try(name, func(r *beneath.Root, name string) error {
		d, err = r.ReadDir(name)
		return err
	})
	return d, err
}

// OpenRead opens a regular file; see [beneath.Root.OpenRead].
func (v View) OpenRead(name string) (f *beneath.File, st unix.Stat_t, err error) {
	err = v.try(name, func(r *beneath.Root, name string) error {
		f, st, err = r.OpenRead(name)
		return err
	})
	return f, st, err
}

// absolute is the path of a file.
func (v View) absolute(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return v.Root.Path() + "/" + name
}

// Shown is the name of a file as messages give it: with its whole path.
func (v View) Shown(name string) string {
	if len(name) > unix.PathMax { // from a peer; such a file cannot exist
		name = name[:unix.PathMax] + "..."
	}
	if URLScheme(name) != "" {
		return SafeURL(name)
	}
	return v.absolute(name)
}
