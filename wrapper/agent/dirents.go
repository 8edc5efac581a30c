package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// directory is a directory that is being read, a few names at a time: memory must not grow
// with the number of names.
type directory struct {
	fd     int
	buf    []byte
	unread []byte
}

// direntBuffer has room for some thirty of the longest names.
const direntBuffer = 8 << 10

// openDirectoryAt opens a directory; anything else, and a link, is an error.
func openDirectoryAt(at int, name string) (*directory, error) {
	for {
		fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &directory{fd: fd}, nil
	}
}

func (d *directory) close() { _ = unix.Close(d.fd) }

// rewind starts over.
func (d *directory) rewind() error {
	d.unread = nil
	_, err := unix.Seek(d.fd, 0, io.SeekStart)
	return err
}

// The layout of struct linux_dirent64 (getdents64(2)): inode 8, offset 8, length
// of the record 2, type 1, name up to a NUL.
const (
	direntLength = 8 + 8
	direntType   = direntLength + 2
	direntName   = direntType + 1
)

// next gives the next name and its type (DT_DIR ...), "." and ".." left out, and
// io.EOF after the last.
func (d *directory) next() (name string, kind byte, err error) {
	for {
		if len(d.unread) == 0 {
			if err := d.fill(); err != nil {
				return "", 0, err
			}
		}
		length := 0
		if len(d.unread) >= direntName {
			length = int(binary.NativeEndian.Uint16(d.unread[direntLength:]))
		}
		if length < direntName || length > len(d.unread) {
			return "", 0, unix.EIO // impossible, but must not panic
		}
		record := d.unread[:length]
		d.unread = d.unread[length:]
		text, _, _ := bytes.Cut(record[direntName:], []byte{0})
		if string(text) != "." && string(text) != ".." {
			return string(text), record[direntType], nil
		}
	}
}

func (d *directory) fill() error {
	if d.buf == nil {
		d.buf = make([]byte, direntBuffer)
	}
	for {
		n, err := unix.Getdents(d.fd, d.buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return io.EOF
		}
		d.unread = d.buf[:n]
		return nil
	}
}
