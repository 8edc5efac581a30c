package beneath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"github.com/hashicorp/go-multierror"
	"golang.org/x/sys/unix"
)

// RemoveAll removes whatever has this name in an open directory, with all that is below
// it. A missing name is not an error. It follows no links and crosses no mount: it
// leaves a mount point, with what is mounted there, and returns an error for it. If the
// process may, it changes modes that are in the way, and clears immutable and
// append-only flags (FS_IOC_SETFLAGS). It goes on after an error and returns the first
// few.
//
// It needs a handful of descriptors and little memory however wide and deep the tree
// is. It is meant for trees that nobody changes any more. With other trees it is safe,
// but may fail.
func RemoveAll(ctx context.Context, dir int, name string) error {
	err := unlink(dir, name)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	top, openErr := openToEmpty(dir, name, mountOf{})
	if openErr != nil {
		if errors.Is(openErr, unix.ENOTDIR) || errors.Is(openErr, unix.ELOOP) {
			openErr = err // not a directory: say why it could not be unlinked
		}
		return &fs.PathError{Op: "remove", Path: name, Err: openErr}
	}
	defer top.Close()
	r := &remover{ctx: ctx, top: top}
	if r.on, err = mount(top.fd); err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	if parent, err := mount(dir); err == nil && parent != r.on {
		return &fs.PathError{Op: "remove", Path: name, Err: errMounted}
	}
	r.all(name)
	if err := rmdir(dir, name); err != nil && !errors.Is(err, unix.ENOENT) && len(r.errs) == 0 {
		r.fail(name, err)
	}
	return r.result(name)
}

// Empty is RemoveAll for everything in an open directory, which itself stays.
func Empty(ctx context.Context, dir int) error {
	top, err := openDir(dir, ".", mountOf{})
	if err != nil {
		return &fs.PathError{Op: "empty", Path: ".", Err: err}
	}
	defer top.Close()
	r := &remover{ctx: ctx, top: top}
	if r.on, err = mount(top.fd); err != nil {
		return &fs.PathError{Op: "empty", Path: ".", Err: err}
	}
	r.all(".")
	return r.result(".")
}

// all empties the top, and repeats that while directories are moved there.
func (r *remover) all(name string) {
	for r.moved = true; r.moved && r.ctx.Err() == nil; {
		r.moved = false
		r.empty(r.top, name, 0)
		if err := r.top.rewind(); err != nil {
			r.fail(name, err)
			break
		}
	}
}

func (r *remover) result(name string) error {
	if r.ctx.Err() != nil {
		r.errs = append(r.errs, fmt.Errorf("remove %s: %w", name, context.Cause(r.ctx)))
	}
	var all *multierror.Error
	return multierror.Append(all, r.errs...).ErrorOrNil()
}

var errMounted = errors.New("a file system is mounted there")

type remover struct {
	ctx   context.Context
	top   *Dir
	on    mountOf
	stash int  // names given so far to directories moved up
	moved bool // a directory was moved up: the top has to be read again
	errs  []error
}

const (
	// maxDepth is how far the remover goes down before it moves what is
	// below to the top: one descriptor is held for every level.
	maxDepth = 48
	// maxPasses ends the race with somebody who keeps making files.
	maxPasses = 100
	// maxErrors is how many errors are reported.
	maxErrors = 8
)

func (r *remover) fail(path string, err error) {
	if len(r.errs) < maxErrors {
		r.errs = append(r.errs, &fs.PathError{Op: "remove", Path: path, Err: err})
	}
}

// empty removes everything in d. A file system may skip entries when others
// are removed while it is read, so it is read again until a pass finds nothing
// that could be removed.
func (r *remover) empty(d *Dir, path string, depth int) {
	for pass := range maxPasses {
		removed, failed := 0, 0
		for r.ctx.Err() == nil {
			name, err := d.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				r.fail(path, err)
				return
			}
			if r.one(d, name, path, depth, pass) {
				removed++
			} else {
				failed++
			}
		}
		if r.ctx.Err() != nil || removed == 0 || (failed > 0 && pass > 0) {
			return
		}
		if err := d.rewind(); err != nil {
			r.fail(path, err)
			return
		}
	}
}

// one removes one entry and reports whether it is gone. It records errors only in the
// first pass.
func (r *remover) one(d *Dir, name, path string, depth, pass int) bool {
	err := unlink(d.fd, name)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return true
	}
	full := path + "/" + name
	if len(full) > unix.PathMax {
		full = full[:unix.PathMax]
	}
	tell := func(err error) bool {
		if pass == 0 {
			r.fail(full, err)
		}
		return false
	}
	var st unix.Stat_t
	if e := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); e != nil {
		return errors.Is(e, unix.ENOENT)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return tell(err)
	}
	if rmdir(d.fd, name) == nil { // empty: no need to look inside
		return true
	}
	if depth >= maxDepth {
		for tries := 0; tries < 1000; tries++ {
			r.stash++
			to := ".removing." + strconv.Itoa(r.stash)
			err = unix.Renameat(d.fd, name, r.top.fd, to)
			if err == nil {
				r.moved = true
				return true
			}
			if !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR) {
				break // anything but a name that is taken
			}
		}
		return tell(err)
	}
	sub, err := openToEmpty(d.fd, name, r.on)
	if err != nil {
		return tell(err)
	}
	before := len(r.errs)
	r.empty(sub, full, depth+1)
	sub.Close()
	if err := rmdir(d.fd, name); err != nil && !errors.Is(err, unix.ENOENT) {
		if len(r.errs) > before {
			return false // errors inside are recorded already
		}
		return tell(err)
	}
	return true
}

// openToEmpty opens a directory and, where need be, makes it readable and writable
// first. Modes matter only to a process without root's rights.
func openToEmpty(at int, name string, on mountOf) (*Dir, error) {
	d, err := openDir(at, name, on)
	if errors.Is(err, unix.EACCES) {
		var st unix.Stat_t
		if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			_ = unix.Fchmodat(at, name, 0o700, unix.AT_SYMLINK_NOFOLLOW)
			if d, err = openDir(at, name, on); errors.Is(err, unix.EACCES) {
				// Before Linux 6.6 the flag is not known. Whoever gets
				// here has no more rights than the owner of the tree.
				_ = unix.Fchmodat(at, name, 0o700, 0)
				d, err = openDir(at, name, on)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if unix.Faccessat(d.fd, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS) != nil {
		_ = unix.Fchmod(d.fd, 0o700)
	}
	return d, nil
}

// unlink removes a name that is not a directory. It first clears flags that forbid
// that.
func unlink(at int, name string) error {
	err := unix.Unlinkat(at, name, 0)
	if errors.Is(err, unix.EPERM) {
		if unmark(at, ".") || unmark(at, name) {
			err = unix.Unlinkat(at, name, 0)
		}
	}
	return err
}

func rmdir(at int, name string) error {
	err := unix.Unlinkat(at, name, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.EPERM) {
		if unmark(at, ".") || unmark(at, name) {
			err = unix.Unlinkat(at, name, unix.AT_REMOVEDIR)
		}
	}
	return err
}

const (
	flagImmutable  = 0x10 // FS_IMMUTABLE_FL, include/uapi/linux/fs.h
	flagAppendOnly = 0x20 // FS_APPEND_FL
)

// unmark takes the immutable and the append-only mark off a file or directory
// (ioctl_iflags(2)) and reports whether there was one to take.
func unmark(at int, name string) bool {
	var st unix.Stat_t
	if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	if t := st.Mode & unix.S_IFMT; t != unix.S_IFREG && t != unix.S_IFDIR {
		return false // do not open anything else
	}
	fd, err := retry(func() (int, error) {
		return unix.Openat(at, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return false
	}
	defer closeFD(fd)
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err != nil || flags&(flagImmutable|flagAppendOnly) == 0 {
		return false
	}
	return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags&^(flagImmutable|flagAppendOnly))) == nil
}
