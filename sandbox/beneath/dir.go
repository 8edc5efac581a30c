package beneath

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Dir is a directory being read. Entries come as the kernel gives them, a
// buffer at a time: a directory of ten million names costs no more memory than
// one of ten.
type Dir struct {
	fd     int
	name   string
	lean   bool
	buf    []byte
	unread []byte
	taken  int64 // the offset behind the last name that was returned
}

const (
	// dirBuffer is what one getdents64(2) may return, about 800 names.
	dirBuffer = 32 << 10
	// leanBuffer has room for a few names; an entry has 280 bytes at most.
	leanBuffer = 2 << 10
)

// Lean makes reading use little memory, for a caller that has many directories open at
// once. It must be called before the first Next.
func (d *Dir) Lean() { d.lean = true }

// ReadDir opens a directory for reading. It follows links that stay beneath the root.
func (r *Root) ReadDir(name string) (*Dir, error) {
	fd, err := r.open("read directory", name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return &Dir{fd: fd, name: name}, nil
}

// Next returns the next name, except "." and "..", and io.EOF after the last.
func (d *Dir) Next() (string, error) {
	name, err := d.next()
	if err != nil && !errors.Is(err, io.EOF) {
		err = &fs.PathError{Op: "read directory", Path: d.name, Err: err}
	}
	return name, err
}

// The layout of struct linux_dirent64 (getdents64(2)): inode 8, offset 8,
// record length 2, type 1, name up to a NUL.
const direntHeader = 8 + 8 + 2 + 1

func (d *Dir) next() (string, error) {
	for {
		if len(d.unread) == 0 {
			if d.buf == nil {
				size := dirBuffer
				if d.lean {
					size = leanBuffer
				}
				d.buf = make([]byte, size)
			}
			n, err := retry(func() (int, error) { return unix.Getdents(d.fd, d.buf) })
			if err != nil {
				return "", err
			}
			if n == 0 {
				return "", io.EOF
			}
			d.unread = d.buf[:n]
		}
		length := 0
		if len(d.unread) >= direntHeader {
			length = int(binary.NativeEndian.Uint16(d.unread[16:]))
		}
		if length < direntHeader || length > len(d.unread) {
			return "", unix.EIO // cannot happen, but must not be a panic
		}
		d.taken = int64(binary.NativeEndian.Uint64(d.unread[8:]))
		name := d.unread[direntHeader:length]
		d.unread = d.unread[length:]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		switch string(name) {
		case ".", "..":
			continue
		}
		return string(name), nil
	}
}

// Lstat says what an entry of the directory is; a link is a link.
func (d *Dir) Lstat(entry string) (unix.Stat_t, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, entry, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return st, &fs.PathError{Op: "stat", Path: d.name + "/" + entry, Err: err}
	}
	return st, nil
}

// Close closes the directory.
func (d *Dir) Close() { closeFD(d.fd) }

// rewind starts over.
func (d *Dir) rewind() error {
	d.unread = nil
	_, err := unix.Seek(d.fd, 0, io.SeekStart)
	return err
}
