package agent

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// setLinks makes the links that a start asks for and removes those of the start before.
func (a *agent) setLinks(want []payload.Link) *payload.StartError {
	if slices.EqualFunc(a.links, want, func(made madeLink, l payload.Link) bool { return made.Link == l }) {
		return nil
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return linkFailure("/", err)
	}
	defer func() { _ = unix.Close(root) }()
	for len(a.links) > 0 {
		last := len(a.links) - 1
		if err := removeLink(root, a.links[last]); err != nil {
			return linkFailure(a.links[last].At, err)
		}
		a.links = a.links[:last]
	}
	for _, l := range want {
		replaced, err := makeLink(root, l)
		if err != nil {
			return linkFailure(l.At, err)
		}
		a.links = append(a.links, madeLink{l, replaced})
	}
	return nil
}

// madeLink is a link, and the empty directory that was in its place, nil for none.
type madeLink struct {
	payload.Link
	replaced *unix.Stat_t
}

func linkFailure(at string, err error) *payload.StartError {
	var errno syscall.Errno
	_ = errors.As(err, &errno)
	detail := err.Error()
	switch {
	case errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.ENOTDIR):
		detail = "the image has something there; only an empty directory can be replaced"
	case errors.Is(err, unix.ELOOP):
		detail = "a symbolic link of the image is in the way"
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EBUSY):
		detail = "something is mounted there"
	case errors.Is(err, unix.EROFS):
		detail = "the container's root file system is read-only"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		detail = "container-root may not write there"
	case errors.Is(err, unix.ENOSYS):
		detail = "doing this safely needs Linux 5.6"
	}
	return &payload.StartError{Stage: payload.StageLink, Path: at, Errno: errno, Detail: detail}
}

// makeLink makes a symbolic link below root, and the missing directories above it. It
// removes an empty directory in its place, and says what that was like.
//
// The image is the user's, and an earlier job may have changed a reused container: neither
// may lead root out of the container's own file system, to the control directory or another
// volume. So this walks one component at a time, through no symbolic link and into no
// mount.
func makeLink(root int, l payload.Link) (replaced *unix.Stat_t, err error) {
	dir, name, err := walk(root, l.At, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(dir) }()
	if err := unix.Symlinkat(l.To, dir, name); !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	replaced = new(unix.Stat_t)
	if err := unix.Fstatat(dir, name, replaced, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, err
	}
	if err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err != nil {
		return nil, err
	}
	if err := unix.Symlinkat(l.To, dir, name); err != nil {
		return nil, errors.Join(err, putBack(dir, name, replaced))
	}
	return replaced, nil
}

// putBack makes an empty directory again that was replaced: the next job in this container may want
// a /tmp.
func putBack(dir int, name string, was *unix.Stat_t) error {
	if err := unix.Mkdirat(dir, name, 0o700); err != nil {
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	// The owner goes first: a change of owner may clear bits of the mode.
	if err := unix.Fchown(fd, int(was.Uid), int(was.Gid)); err != nil && !errors.Is(err, unix.EPERM) { // without CHOWN it is root's
		return err
	}
	return unix.Fchmod(fd, was.Mode&0o7777)
}

// removeLink removes a link if it is still as it was made. A payload that could write to a directory
// above it may have moved that away, and put something in its place: the link is not ours any more.
// The empty directory that it replaced is there again.
func removeLink(root int, l madeLink) error {
	dir, name, err := walk(root, l.At, false)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV):
		return nil
	case err != nil:
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	buf := make([]byte, len(l.To)+1)
	if n, err := unix.Readlinkat(dir, name, buf); err != nil || string(buf[:n]) != l.To {
		return nil // not ours any more
	}
	if err := unix.Unlinkat(dir, name, 0); err != nil || l.replaced == nil {
		return err
	}
	if err := putBack(dir, name, l.replaced); !errors.Is(err, unix.EEXIST) { // a payload was faster, where it may write
		return err
	}
	return nil
}

// walk opens the directory above a path.
func walk(root int, at string, create bool) (dir int, name string, err error) {
	parent, name := path.Split(strings.TrimPrefix(at, "/"))
	if dir, err = unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return -1, "", err
	}
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	}
	for _, part := range strings.FieldsFunc(parent, func(r rune) bool { return r == '/' }) {
		next, err := unix.Openat2(dir, part, &how)
		if errors.Is(err, unix.ENOENT) && create {
			if err = unix.Mkdirat(dir, part, 0o755); err == nil || errors.Is(err, unix.EEXIST) {
				next, err = openNew(dir, part, &how, err == nil)
			}
		}
		_ = unix.Close(dir)
		if err != nil {
			return -1, "", fmt.Errorf("%s: %w", part, err)
		}
		dir = next
	}
	return dir, name, nil
}

// openNew opens a directory that was just made, if made says so, and opens it to all: the wrapper's umask keeps
// everybody else out.
func openNew(dir int, name string, how *unix.OpenHow, made bool) (int, error) {
	if made {
		readable := *how
		readable.Flags &^= unix.O_PATH
		fd, err := unix.Openat2(dir, name, &readable)
		if err == nil {
			err = unix.Fchmod(fd, 0o755)
			_ = unix.Close(fd)
		}
		if err != nil {
			return -1, err
		}
	}
	return unix.Openat2(dir, name, how)
}
