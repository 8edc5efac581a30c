package imagetree

import (
	"errors"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// beneath resolves a path in the container's own file system, through no symbolic link and into
// no mount: the carrier image and the stream are not trusted, and volumes are.
var beneath = unix.OpenHow{
	Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
	Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
}

// places opens the directories of entries. The last one stays open, since the files of a
// directory come one after the other.
type places struct {
	root int
	name string // of the open one; empty for none
	dir  int
}

func (p *places) close() {
	if p.name != "" {
		_ = unix.Close(p.dir)
		p.name = ""
	}
}

// open opens a directory that an earlier entry or the container has; "." is the root.
func (p *places) open(name string) (int, error) {
	if name == "." {
		return p.root, nil
	}
	if name == p.name {
		return p.dir, nil
	}
	p.close()
	dir, err := unix.Openat2(p.root, name, &beneath)
	switch {
	case errors.Is(err, unix.EXDEV):
		return -1, errMounted
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return -1, malformed("the directory %.200q does not come before what is in it", name)
	case err != nil:
		return -1, os.NewSyscallError("openat2", err)
	}
	p.name, p.dir = name, dir
	return dir, nil
}

// make makes a directory, or gives the container's own the image's mode. Its owner can always
// write to it: container-root has no capability to write to it otherwise.
func (p *places) make(parent int, name string, mode uint32) error {
	base := path.Base(name)
	mode |= 0o700
	err := unix.Mkdirat(parent, base, mode)
	if err == nil || !errors.Is(err, unix.EEXIST) {
		return err
	}
	dir, err := unix.Openat2(parent, base, &beneath)
	switch {
	case err == nil:
		defer func() { _ = unix.Close(dir) }()
		var st unix.Stat_t
		if err := unix.Fstat(dir, &st); err != nil || st.Mode&rights == mode {
			return err
		}
		if err := unix.Fchmodat(parent, base, mode, 0); err != nil && !errors.Is(err, unix.EPERM) { // EPERM: the carrier gave it to somebody else
			return err
		}
		return nil
	case errors.Is(err, unix.EXDEV):
		return errMounted
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return replacing(parent, base, func() error { return unix.Mkdirat(parent, base, mode) })
	}
	return err
}

// replacing makes something in the place of what the container has there, if anything. It is
// errMounted if that, or something below it, is a mount.
func replacing(dir int, base string, create func() error) error {
	err := create()
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	if err := clear(dir, base, maxClear); err != nil {
		return err
	}
	return create()
}

// maxClear is how deep a directory of the container may be that an entry replaces. A carrier is
// all but empty.
const maxClear = 16

// clear removes a file, or a directory with all that is in it, but no mount.
func clear(dir int, base string, deep int) error {
	err := unix.Unlinkat(dir, base, 0)
	switch {
	case errors.Is(err, unix.EBUSY):
		return errMounted
	case errors.Is(err, unix.EISDIR):
		err = unix.Unlinkat(dir, base, unix.AT_REMOVEDIR)
	}
	switch {
	case errors.Is(err, unix.EBUSY):
		return errMounted
	case !errors.Is(err, unix.ENOTEMPTY):
		return err
	case deep == 0:
		return err
	}
	how := beneath
	how.Flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := unix.Openat2(dir, base, &how)
	if errors.Is(err, unix.EXDEV) {
		return errMounted
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), base)
	defer f.Close()
	for {
		names, err := f.Readdirnames(64)
		for _, name := range names {
			if err := clear(fd, name, deep-1); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	return unix.Unlinkat(dir, base, unix.AT_REMOVEDIR)
}
