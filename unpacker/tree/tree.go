// Package tree walks a directory that is an image, and hands its entries to a tar stream. It
// follows no link and looks at nothing outside of the directory.
package tree

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/unpacker/fault"
	"podstarter/unpacker/tarstream"
)

// maxNames bounds the names that are held in memory: those of the directories on the way to where
// the walk is, in bytes with nameCost for each.
const (
	maxNames = 128 << 20
	nameCost = 32
)

// MaxDepth is how many directories can be open at once.
const MaxDepth = 1000

type walk struct {
	w      *tarstream.Writer
	device uint64 // of the file system of the root
	held   int    // of maxNames
	buf    []byte
}

// Walk adds all entries below an open directory to a stream, each directory before what is in it,
// sorted by their names. What is mounted below is not part of the image: the directory stays empty.
func Walk(root int, w *tarstream.Writer) error {
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return fault.New(fault.Read, "look at the image's directory: %w", err)
	}
	t := walk{w: w, device: st.Dev, buf: make([]byte, 256<<10)}
	fd, err := open(root, ".", unix.O_DIRECTORY)
	if err != nil {
		return fault.New(fault.Read, "open the image's directory: %w", err)
	}
	return t.directory(fd, "")
}

// open opens without following a link, and without waiting for the other end of a FIFO.
func open(dir int, name string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC|flags, 0)
		if err == nil {
			return os.NewFile(uintptr(fd), name), nil
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, err
		}
	}
}

// directory adds what is in a directory, and closes it.
func (t *walk) directory(f *os.File, path string) error {
	defer f.Close()
	names, cost, err := t.names(f, path)
	if err != nil {
		return err
	}
	defer func() { t.held -= cost }()
	for _, name := range names {
		if err := t.entry(int(f.Fd()), path, name); err != nil {
			return err
		}
	}
	return nil
}

// names reads and sorts the names of a directory.
func (t *walk) names(f *os.File, path string) (names []string, cost int, err error) {
	for {
		some, err := f.Readdirnames(1000)
		for _, name := range some {
			if err := t.w.Count(); err != nil {
				return nil, 0, err
			}
			cost += len(name) + nameCost
		}
		names = append(names, some...)
		if t.held+cost > maxNames {
			return nil, 0, fault.New(fault.TooLarge, "read directory %.200q: its names, with those of the directories above, have more than %d bytes", "/"+path, maxNames)
		}
		switch {
		case errors.Is(err, io.EOF):
			t.held += cost
			slices.Sort(names)
			return names, cost, nil
		case err != nil:
			return nil, 0, fault.New(fault.Read, "read directory %.200q: %w", "/"+path, err)
		}
	}
}

// entry adds one name, with all below it.
func (t *walk) entry(dir int, parent, name string) error {
	path, err := t.w.Join(parent, name)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if isClosed(err) { // the directory can be listed, and no more
		return t.w.Add(tarstream.Entry{Path: path, Kind: tarstream.Skipped})
	}
	if err != nil {
		return fault.New(fault.Read, "look at %.200q: %w", "/"+path, err)
	}
	e := tarstream.Entry{Path: path, Mode: st.Mode & 0o7777, Modified: st.Mtim.Sec, Kind: tarstream.Skipped}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		e.Kind = tarstream.FIFO
	case unix.S_IFLNK:
		e.Kind = tarstream.Symlink
		if e.Target, err = target(dir, name); err != nil {
			return fault.New(fault.Read, "read symbolic link %.200q: %w", "/"+path, err)
		}
	case unix.S_IFDIR:
		return t.subdirectory(dir, name, st, e)
	case unix.S_IFREG:
		return t.file(dir, name, st, e)
	}
	return t.w.Add(e)
}

func target(dir int, name string) (string, error) {
	var b [unix.PathMax + 1]byte
	n, err := unix.Readlinkat(dir, name, b[:])
	return string(b[:max(n, 0)]), err
}

func (t *walk) subdirectory(dir int, name string, st unix.Stat_t, e tarstream.Entry) error {
	e.Kind = tarstream.Directory
	if st.Dev != t.device {
		return t.w.Add(e)
	}
	f, err := t.same(dir, name, st, e.Path, unix.O_DIRECTORY)
	if isClosed(err) {
		e.Mode = 0
		return t.w.Add(e)
	}
	if err != nil {
		return err
	}
	if err := t.w.Add(e); err != nil {
		f.Close()
		return err
	}
	return t.directory(f, e.Path)
}

// same opens what was looked at.
func (t *walk) same(dir int, name string, st unix.Stat_t, path string, flags int) (*os.File, error) {
	f, err := open(dir, name, flags)
	if err != nil {
		return nil, fault.New(fault.Read, "open %.200q: %w", "/"+path, err)
	}
	var now unix.Stat_t
	if err = unix.Fstat(int(f.Fd()), &now); err == nil && (now.Dev != st.Dev || now.Ino != st.Ino || now.Mode&unix.S_IFMT != st.Mode&unix.S_IFMT) {
		err = errors.New("it was replaced in the meantime")
	}
	if err != nil {
		f.Close()
		return nil, fault.New(fault.Read, "open %.200q: %w", "/"+path, err)
	}
	return f, nil
}

func (t *walk) file(dir int, name string, st unix.Stat_t, e tarstream.Entry) error {
	e.Kind, e.Size, e.Names = tarstream.File, st.Size, uint32(min(uint64(st.Nlink), 1<<32-1)) //nolint:unconvert // it has 32 bits on arm64
	e.Identity = tarstream.Identity{Device: st.Dev, Number: st.Ino}
	f, err := t.same(dir, name, st, e.Path, 0)
	if isClosed(err) {
		e.Mode, e.Size, e.Names = 0, 0, 1
		return t.w.Add(e)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	e.Content = func(out io.Writer) error { return t.copy(out, f, st.Size) }
	return t.w.Add(e)
}

// isClosed tells whether this program's user may not read something. A job in the directory itself could not
// either, so it gets an empty one, and a file that it may not read.
func isClosed(err error) bool { return errors.Is(err, unix.EACCES) }

// copy copies size bytes. A file that has become shorter is an error, one that has become longer is cut off.
func (t *walk) copy(out io.Writer, f *os.File, size int64) error {
	for size > 0 {
		n, err := f.Read(t.buf[:min(size, int64(len(t.buf)))])
		if n > 0 {
			if _, err := out.Write(t.buf[:n]); err != nil {
				return err
			}
			size -= int64(n)
			continue
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("it has become shorter in the meantime")
		}
		return fault.New(fault.Read, "read it: %s", strings.TrimPrefix(err.Error(), "read "))
	}
	return nil
}
