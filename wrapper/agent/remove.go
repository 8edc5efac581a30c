package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// remover removes what one user owns in a directory that others use too. The calling thread
// has that user's identity. No process of the user is alive, but other users' are, and may
// be hostile. So
//
//   - it closes each of the user's directories to others before it does anything in it;
//     then descriptors that they hold do not help them (mkdirat(2) and the like check
//     modes);
//   - it follows no link and crosses no mount;
//   - at most maxDepth directories are open at a time; deeper ones are moved to the top;
//   - it reads names some dozens at a time, however many files there are;
//   - only its owner can remove another user's directory that is not empty; this is not a
//     failure, see aside.
type remover struct {
	uid      int
	base     *directory // the directory that others use too
	share    bool       // what cannot be removed is put aside there
	deadline time.Time
	steps    int
	late     bool // the deadline has passed
	foreign  int  // names still to examine at most in what others put aside

	top    *directory // the user's directory in base that is being removed
	names  string     // part of the names of moved directories
	count  int        // of moved directories so far
	failed int        // entries that could not be removed
	errs   []error    // the first few
}

const (
	// maxDepth is how many nested directories are open at most.
	maxDepth = 16
	// maxPasses bounds how often one directory is read: a file system may skip names while
	// others are removed.
	maxPasses = 1000
	// maxRemoveErrors is how many errors are reported.
	maxRemoveErrors = 4
	// maxForeign is how many names are examined in what others put aside: they may put any
	// number there.
	maxForeign = 10_000
	// removeTime bounds a removal. A million files take seconds; the next removal continues.
	removeTime = 2 * time.Minute
)

// asidePrefix starts the names of directories that were put aside.
const asidePrefix = ".left-by-"

var errRemoveTime = fmt.Errorf("not done within %v", removeTime)

// removeIn removes what the user owns in directories. It skips a directory that is missing
// or that the user may not read.
func removeIn(dirs []string, uid int, share bool) error {
	var failed error
	for _, dir := range dirs {
		base, err := openDirectoryAt(unix.AT_FDCWD, dir)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			continue
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("open %s: %w", dir, err))
			continue
		}
		r := newRemover(base, uid, share)
		r.all()
		base.close()
		for _, err := range r.errs {
			failed = errors.Join(failed, fmt.Errorf("in %s: %w", dir, err))
		}
	}
	return failed
}

func newRemover(base *directory, uid int, share bool) *remover {
	return &remover{uid: uid, base: base, share: share, deadline: time.Now().Add(removeTime), foreign: maxForeign, names: rand.Text()}
}

func (r *remover) fail(what, name string, err error) {
	if r.failed++; len(r.errs) < maxRemoveErrors {
		r.errs = append(r.errs, fmt.Errorf("%s %.100q: %w", what, name, err))
	}
}

// inTime tells whether the deadline has not passed; every step asks it.
func (r *remover) inTime() bool {
	const often = 1024
	if r.steps++; !r.late && r.steps%often == 0 && time.Now().After(r.deadline) {
		r.late = true
		r.failed++
		r.errs = append(r.errs, errRemoveTime)
	}
	return !r.late
}

// each calls do for every name in d, and repeats this until nothing changes or something
// fails.
func (r *remover) each(d *directory, do func(name string) (changed bool)) {
	before := r.failed
	for range maxPasses {
		changed := false
		for r.inTime() {
			name, _, err := d.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				r.fail("read a directory", "", err)
				return
			}
			changed = do(name) || changed
		}
		if !changed || r.failed > before {
			return
		}
		if err := d.rewind(); err != nil {
			r.fail("read a directory again", "", err)
			return
		}
	}
	r.fail("empty a directory", "", errors.New("it never is"))
}

// all removes what the user owns in base. Others cannot prolong the passes: it examines
// directories put aside, where others have access, but does not count changes there.
func (r *remover) all() {
	r.each(r.base, func(name string) (changed bool) {
		var st unix.Stat_t
		if unix.Fstatat(r.base.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			return false // gone, or another user is replacing it
		}
		put := r.share && strings.HasPrefix(name, asidePrefix)
		switch {
		case int(st.Uid) == r.uid:
			changed = r.own(r.base, name)
		case put && st.Mode&unix.S_IFMT == unix.S_IFDIR:
			r.amongOthers(name)
		}
		return changed && !put
	})
}

// amongOthers removes what the user owns in a directory that was put aside for another
// user. Its owner may change it or deny access at any time; this is not a failure.
func (r *remover) amongOthers(name string) {
	d, err := openDirectoryAt(r.base.fd, name)
	if err != nil {
		return
	}
	defer d.close()
	failed, errs := r.failed, len(r.errs)
	for ; r.foreign > 0; r.foreign-- {
		name, _, err := d.next()
		if err != nil {
			break
		}
		var st unix.Stat_t
		if unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && int(st.Uid) == r.uid {
			r.own(d, name)
		}
	}
	if !r.late {
		r.failed, r.errs = failed, r.errs[:errs]
	}
}

// own removes an entry of the user's, with all that can be removed below it.
func (r *remover) own(at *directory, name string) (changed bool) {
	err := unlink(at.fd, name)
	switch {
	case err == nil:
		return true
	case !occupied(err):
		r.fail("remove", name, err)
		return false
	}
	r.top, err = r.enter(at, name)
	if errors.Is(err, errNotOurs) && r.share {
		return false
	}
	if err != nil {
		r.fail("open", name, err)
		return false
	}
	defer func() { r.top.close() }()
	before, last := r.failed, r.count
	changed = r.empty(r.top, 0)
	// By number: searching for them again among entries that stay would take quadratic time.
	for ; last < r.count && r.failed == before; last++ {
		changed = r.one(r.top, r.moved(last+1), 0) || changed
	}
	err = unlink(at.fd, name)
	switch {
	case err == nil:
		return true
	case r.failed > before: // and fail has recorded why
		return changed
	case !occupied(err):
		r.fail("remove", name, err)
		return changed
	case !r.share:
		r.fail("remove", name, errForeign)
		return changed
	case at == r.base && strings.HasPrefix(name, asidePrefix):
		r.open(r.top, name)
		return changed
	}
	return r.aside(at, name, r.top) || changed
}

// occupied tells whether a directory cannot be removed because it is not empty or is a
// mount point.
func occupied(err error) bool {
	return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EBUSY)
}

var errForeign = errors.New("something of another user is in it, or something is mounted there")

// empty removes the content of a directory of the user's. What stays is not the user's.
func (r *remover) empty(d *directory, depth int) (removed bool) {
	r.each(d, func(name string) bool {
		if d == r.top && strings.HasPrefix(name, "."+r.names) {
			return false // removed later
		}
		changed := r.one(d, name, depth)
		removed = removed || changed
		return changed
	})
	return removed
}

// one removes one entry of a directory of the user's.
func (r *remover) one(d *directory, name string, depth int) (changed bool) {
	err := unlink(d.fd, name)
	switch {
	case err == nil:
		return true
	case !occupied(err):
		r.fail("remove", name, err)
		return false
	}
	sub, err := r.enter(d, name)
	switch {
	case errors.Is(err, errNotOurs):
		return false
	case err != nil:
		r.fail("open", name, err)
		return false
	}
	defer sub.close()
	if depth >= maxDepth {
		return r.move(d, name)
	}
	before := r.failed
	changed = r.empty(sub, depth+1)
	err = unlink(d.fd, name)
	switch {
	case err == nil:
		return true
	case r.failed > before:
		return changed
	case !occupied(err):
		r.fail("remove", name, err)
		return changed
	case !r.share: // own reports it
		return changed
	}
	return r.aside(d, name, sub) || changed
}

// move moves a directory that is too deep to the top.
func (r *remover) move(d *directory, name string) bool {
	r.count++
	if err := unix.Renameat2(d.fd, name, r.top.fd, r.moved(r.count), unix.RENAME_NOREPLACE); err != nil {
		r.fail("move up (it is too deep to remove in place)", name, err)
		return false
	}
	return true
}

// moved is the name of a directory that was moved to the top. No other entry has such a
// name.
func (r *remover) moved(number int) string { return "." + r.names + "." + strconv.Itoa(number) }

// aside renames a directory of the user's that cannot be removed because only others still
// have something in it. No program looks for the new name. Others may enter it as they may
// enter the directory above, so that the removal of their own leftovers covers it
// (foreign); the owner's next removal then removes it.
func (r *remover) aside(at *directory, name string, d *directory) bool {
	r.count++
	to := asidePrefix + strconv.Itoa(r.uid) + r.moved(r.count)
	if err := unix.Renameat2(at.fd, name, r.base.fd, to, unix.RENAME_NOREPLACE); err != nil {
		r.fail("put aside", name, err)
		return false
	}
	r.open(d, name)
	return true
}

// open lets others into a directory that was put aside.
func (r *remover) open(d *directory, name string) {
	if err := unix.Fchmod(d.fd, 0o777|unix.S_ISVTX); err != nil {
		r.fail("open to others", name, err)
	}
}

var errNotOurs = errors.New("it belongs to another user, or something is mounted there")

// enter opens a directory of the user's and closes it to others. A directory of another
// user, or a mount point, is an error (errNotOurs).
func (r *remover) enter(at *directory, name string) (*directory, error) {
	// O_PATH needs no permission on the directory itself.
	fd, err := unix.Openat(at.fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil, errNotOurs // somebody else did it: nothing changes in a directory of the user's
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	var above, st unix.Stat_t
	if err := unix.Fstat(at.fd, &above); err != nil {
		return nil, err
	}
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if int(st.Uid) != r.uid || st.Dev != above.Dev {
		return nil, errNotOurs
	}
	if st.Mode&0o7777 != 0o700 {
		// fchmod(2) refuses an O_PATH descriptor.
		if err := unix.Chmod(procfs+"/self/fd/"+strconv.Itoa(fd), 0o700); err != nil {
			return nil, fmt.Errorf("close it to others: %w", err)
		}
	}
	return openDirectoryAt(fd, ".")
}

// unlink removes a file or an empty directory. A missing name is not an error.
func unlink(at int, name string) error {
	err := unix.Unlinkat(at, name, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(at, name, unix.AT_REMOVEDIR)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
