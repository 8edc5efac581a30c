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

// throughLinks resolves a path as beneath does, but through symbolic links, as if root were /. Layers of an image may have entries
// below what is a link in a layer before them, such as /lib.
var throughLinks = unix.OpenHow{
	Flags:   beneath.Flags,
	Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
}

// places opens the directories of entries. The last one stays open, since the files of a
// directory come one after the other.
type places struct {
	root   int
	layers bool         // through links, as container runtimes do with layers
	count  func() error // counts a directory before it is made; nil if none is
	name   string       // of the open one; empty for none
	dir    int
}

// find opens a directory that is there. It is the caller's to close.
func (p *places) find(name string, flags uint64) (int, error) {
	how := beneath
	if p.layers {
		how = throughLinks
	}
	how.Flags = flags | unix.O_DIRECTORY | unix.O_CLOEXEC
	// On the way up from a directory the kernel gives up if anything on the node is renamed meanwhile (openat2(2), EAGAIN).
	for try := 0; ; try++ {
		dir, err := unix.Openat2(p.root, name, &how)
		if try >= maxTries || !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return dir, err
		}
	}
}

const (
	maxTries = 1000
	// maxLinks is how many links that lead to nothing may follow each other.
	maxLinks = 8
)

// reach opens a directory for an entry, which is the caller's to close. If directories are counted, it makes what is missing, also
// where a link leads to nothing.
func (p *places) reach(name string, links int) (int, error) {
	dir, err := p.find(name, unix.O_PATH)
	if p.count == nil || !errors.Is(err, unix.ENOENT) {
		return dir, err
	}
	above, base := p.root, path.Base(name)
	if parent := path.Dir(name); parent != "." {
		if above, err = p.reach(parent, links); err != nil {
			return -1, err
		}
		defer func() { _ = unix.Close(above) }()
	}
	if err := p.count(); err != nil {
		return -1, err
	}
	err = unix.Mkdirat(above, base, 0o755)
	if errors.Is(err, unix.EEXIST) && links < maxLinks {
		err = p.reachTarget(above, name, links+1)
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	return p.find(name, unix.O_PATH)
}

// reachTarget makes what a link leads to. What is there and no link stays as it is.
func (p *places) reachTarget(above int, name string, links int) error {
	var target [maxPath + 1]byte
	n, err := unix.Readlinkat(above, path.Base(name), target[:])
	if err != nil {
		return nil //nolint:nilerr // it is no link: whoever opens it says so
	}
	to := string(target[:n])
	if !path.IsAbs(to) {
		to = "/" + path.Dir(name) + "/" + to
	}
	if to = path.Clean(to)[1:]; to == "" {
		return nil
	}
	dir, err := p.reach(to, links)
	if err != nil {
		return err
	}
	return unix.Close(dir)
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
		p.close() // an entry of the root may take its place
		return p.root, nil
	}
	if name == p.name {
		return p.dir, nil
	}
	p.close()
	dir, err := p.reach(name, 0)
	switch f := (*failure)(nil); {
	case errors.As(err, &f):
		return -1, err
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

// maxClear is how deep a directory may be that an entry replaces or removes.
const maxClear = 256

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
	if err := empty(fd, base, deep); err != nil {
		return err
	}
	return unix.Unlinkat(dir, base, unix.AT_REMOVEDIR)
}

// empty removes all that is in a directory, which it closes. Of what is mounted there, errMounted tells at the end.
func empty(fd int, name string, deep int) error {
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var mounted error
	for {
		names, err := f.Readdirnames(64)
		for _, name := range names {
			switch err := clear(fd, name, deep-1); {
			case errors.Is(err, errMounted):
				mounted = err
			case err != nil:
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return mounted
		}
		if err != nil {
			return err
		}
	}
}

// remove removes an entry of an earlier layer, if there is one: the whole of it, or all that is in it.
func (p *places) remove(name string, contents bool) error {
	p.close() // it may be the open one
	at, flags := path.Dir(name), uint64(unix.O_PATH)
	if contents {
		at, flags = name, unix.O_RDONLY
	}
	dir, err := p.find(at, flags)
	switch {
	case errors.Is(err, unix.EXDEV):
		return errMounted
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil
	case err != nil:
		return err
	}
	if contents {
		return empty(dir, name, maxClear)
	}
	defer func() { _ = unix.Close(dir) }()
	if err := clear(dir, path.Base(name), maxClear); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}
