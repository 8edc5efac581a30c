package agent

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// link is a symbolic link that this wrapper made in its container.
type link struct{ at, to string }

// setLink makes the link that a start asks for and removes the previous start's link.
func (a *agent) setLink(s *payload.Spec) *payload.StartError {
	want := link{s.Link, s.LinkTo}
	if a.link == want {
		return nil
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return linkFailure(s.Link, err)
	}
	defer func() { _ = unix.Close(root) }()
	if a.link.at != "" {
		if err := removeLink(root, a.link); err != nil {
			return linkFailure(a.link.at, err)
		}
		a.link = link{}
	}
	if want.at == "" {
		return nil
	}
	if err := makeLink(root, want); err != nil {
		return linkFailure(want.at, err)
	}
	a.link = want
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
func makeLink(root int, l link) error {
	dir, name, err := walk(root, l.at, true)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	if err := unix.Symlinkat(l.to, dir, name); !errors.Is(err, unix.EEXIST) {
		return err
	}
	if err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err != nil {
		return err
	}
	return unix.Symlinkat(l.to, dir, name)
}

// removeLink removes a link if it is still as it was made.
func removeLink(root int, l link) error {
	dir, name, err := walk(root, l.at, false)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	buf := make([]byte, len(l.to)+1)
	if n, err := unix.Readlinkat(dir, name, buf); err != nil || string(buf[:n]) != l.to {
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
