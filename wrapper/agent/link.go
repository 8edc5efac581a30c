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
	if slices.Equal(a.links, want) {
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
		if err := makeLink(root, l); err != nil {
			return linkFailure(l.At, err)
		}
		a.links = append(a.links, l)
	}
	return nil
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
// removes an empty directory in its place.
//
// The image is the user's, and an earlier job may have changed a reused container: neither
// may lead root out of the container's own file system, to the control directory or another
// volume. So this walks one component at a time, through no symbolic link and into no
// mount.
func makeLink(root int, l payload.Link) error {
	dir, name, err := walk(root, l.At, true)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	if err := unix.Symlinkat(l.To, dir, name); !errors.Is(err, unix.EEXIST) {
		return err
	}
	if err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err != nil {
		return err
	}
	return unix.Symlinkat(l.To, dir, name)
}

// removeLink removes a link if it is still as it was made. A payload that could write to a directory
// above it may have moved that away, and put something in its place: the link is not ours any more.
func removeLink(root int, l payload.Link) error {
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
	return unix.Unlinkat(dir, name, 0)
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
				next, err = unix.Openat2(dir, part, &how)
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
