package beneath

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrOutside is found (errors.Is) in the error for a path that leads out of
// the root: by "..", by an absolute symbolic link, or by a link of /proc.
var ErrOutside = errors.New("leads out of the sandbox")

// ErrNotRegular is found (errors.Is) in the error for opening something that
// is neither a regular file nor a directory.
var ErrNotRegular = errors.New("not a regular file")

// maxLinks is how many symbolic links one lookup may follow, as in the kernel
// (include/linux/namei.h:MAXSYMLINKS).
const maxLinks = 40

// Root is a directory that lookups cannot leave. Its methods may be called
// from any number of goroutines at once; each acts with the filesystem
// identity of the thread that calls it, see [Owner.Do].
type Root struct {
	fd       int
	path     string
	prefixes []string // absolute paths that name the root
	byStep   bool     // the kernel has no openat2, or may not be asked
}

// OpenRoot opens a directory as a root. It trusts the path: it follows links in it.
func OpenRoot(path string) (*Root, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	fd, err := retry(func() (int, error) {
		return unix.Open(abs, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open directory", Path: abs, Err: err}
	}
	r := &Root{fd: fd, path: abs, prefixes: []string{abs}}
	if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
		r.prefixes = append(r.prefixes, real)
	}
	probe, err := unix.Openat2(fd, ".", &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve,
	})
	if err != nil {
		r.byStep = true
	} else {
		closeFD(probe)
	}
	return r, nil
}

// Path returns the absolute path that the root was opened by.
func (r *Root) Path() string { return r.path }

// FD returns the descriptor of the root, opened with O_PATH. It stays valid
// until Close.
func (r *Root) FD() int { return r.fd }

// Close closes the root. Files that were opened through it stay open.
func (r *Root) Close() { closeFD(r.fd) }

// Rel returns the path of an absolute name relative to the root, and whether
// the name lies beneath it. Links are not looked at.
func (r *Root) Rel(abs string) (string, bool) {
	for _, p := range r.prefixes {
		rest, ok := strings.CutPrefix(abs, p)
		switch {
		case !ok:
		case rest == "":
			return ".", true
		case rest[0] == '/':
			if rest = strings.TrimLeft(rest, "/"); rest == "" {
				rest = "."
			}
			return rest, true
		case strings.HasSuffix(p, "/"): // the root is "/"
			return rest, true
		}
	}
	return "", false
}

const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS

// open opens name relative to the root. O_CLOEXEC is added to the flags.
func (r *Root) open(op, name string, flags int, mode uint32) (int, error) {
	flags |= unix.O_CLOEXEC
	if name == "" {
		name = "."
	}
	if !r.byStep && !strings.HasPrefix(name, "/") {
		how := unix.OpenHow{Flags: uint64(flags), Mode: uint64(mode), Resolve: resolve}
		fd, err := retry(func() (int, error) { return unix.Openat2(r.fd, name, &how) })
		if err == nil {
			return fd, nil
		}
		// EXDEV says that the path leaves the root, even if only by an absolute link
		// that comes back in. EAGAIN says that something was renamed while the kernel
		// walked through "..".
		if !errors.Is(err, unix.EXDEV) && !errors.Is(err, unix.EAGAIN) {
			return -1, &fs.PathError{Op: op, Path: name, Err: err}
		}
	}
	fd, err := r.openBySteps(name, flags, mode)
	if err != nil {
		return -1, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return fd, nil
}

// closeFD closes a descriptor that nothing was written to.
func closeFD(fd int) { _ = unix.Close(fd) }

// retry repeats a system call that a signal has interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
