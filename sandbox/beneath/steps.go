package beneath

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// openBySteps does what open does, but without openat2, and also follows an absolute
// link that names the root's own path.
//
// It keeps every directory between the root and the current one open, so ".." goes back
// the way that it came, even if something is renamed meanwhile.
func (r *Root) openBySteps(name string, flags int, mode uint32) (int, error) {
	if len(name) >= unix.PathMax {
		return -1, unix.ENAMETOOLONG
	}
	if strings.HasPrefix(name, "/") {
		rel, ok := r.Rel(name)
		if !ok {
			return -1, ErrOutside
		}
		name = rel
	}
	w := &steps{root: r, at: []int{r.fd}}
	defer w.close()
	rest := split(name)
	for links := 0; ; {
		if len(rest) == 0 {
			return w.openHere(flags)
		}
		step := rest[0]
		rest = rest[1:]
		switch step {
		case ".":
			continue
		case "..":
			if !w.up() {
				return -1, ErrOutside
			}
			continue
		}
		final := len(rest) == 0
		if final {
			fd, err := retry(func() (int, error) {
				return unix.Openat(w.here(), step, flags|unix.O_NOFOLLOW, mode)
			})
			// With O_PATH a link opens as itself instead of failing.
			if err == nil && flags&unix.O_PATH != 0 && flags&unix.O_NOFOLLOW == 0 && isLink(fd) {
				closeFD(fd)
				err = unix.ELOOP
			}
			if err == nil {
				return fd, nil
			}
			if (!errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.ENOTDIR)) || flags&unix.O_NOFOLLOW != 0 || flags&unix.O_EXCL != 0 {
				return -1, err
			}
			target, linkErr := readlink(w.here(), step)
			if linkErr != nil {
				return -1, err
			}
			if rest, err = w.follow(target, rest, &links); err != nil {
				return -1, err
			}
			continue
		}
		target, err := w.down(step)
		if err != nil {
			return -1, err
		}
		if target != "" {
			if rest, err = w.follow(target, rest, &links); err != nil {
				return -1, err
			}
		}
	}
}

// steps is the way from the root to the current directory.
type steps struct {
	root *Root
	at   []int // open directories; the first is the root's own
}

func (w *steps) here() int { return w.at[len(w.at)-1] }

func (w *steps) up() bool {
	if len(w.at) == 1 {
		return false
	}
	closeFD(w.here())
	w.at = w.at[:len(w.at)-1]
	return true
}

func (w *steps) close() {
	for w.up() {
	}
}

// down enters a directory, or returns the target of the link of that name.
func (w *steps) down(step string) (target string, err error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(w.here(), step, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		closeFD(fd)
		return "", err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		w.at = append(w.at, fd)
		return "", nil
	case unix.S_IFLNK:
		defer closeFD(fd)
		return readlink(fd, "")
	}
	closeFD(fd)
	return "", unix.ENOTDIR
}

// follow puts the steps of a link's target before those that remain.
func (w *steps) follow(target string, rest []string, links *int) ([]string, error) {
	if *links++; *links > maxLinks {
		return nil, unix.ELOOP
	}
	if strings.HasPrefix(target, "/") {
		rel, ok := w.root.Rel(target)
		if !ok {
			return nil, ErrOutside
		}
		for w.up() {
		}
		target = rel
	}
	return append(split(target), rest...), nil
}

// openHere opens the current directory itself.
func (w *steps) openHere(flags int) (int, error) {
	return retry(func() (int, error) {
		return unix.Openat(w.here(), ".", flags&^unix.O_CREAT, 0)
	})
}

func split(name string) []string {
	var out []string
	for s := range strings.SplitSeq(name, "/") {
		if s != "" {
			out = append(out, s)
		}
	}
	if strings.HasSuffix(name, "/") {
		out = append(out, ".") // "link/" is the directory behind the link
	}
	return out
}

func isLink(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// readlink reads a link relative to a directory, or with an empty name the
// link that fd was opened on with O_PATH.
func readlink(fd int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := retry(func() (int, error) { return unix.Readlinkat(fd, name, buf) })
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
