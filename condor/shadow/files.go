package shadow

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"podstarter/internal/cedar"
)

// Numbers of the calls on files of the submit side.
const (
	numClose  = 10
	numFsync  = 26
	numLseek  = 54
	numOpen   = 66
	numRead   = 71
	numWrite  = 120
	maxFileIO = 1 << 20 // bytes of one read or write; shadows accept much more
)

// RemoteFile is a file that the shadow has opened, for streamed standard files.
// Its methods are like io's, with a context.
//
// A file belongs to the connection on which it was opened. After
// [Client.Resume] its number may mean another file to another shadow, so every
// method then fails with [ErrLost] and sends nothing: the caller must open the
// file again (stream_handler.cpp:StreamHandler::Reconnect).
type RemoteFile struct {
	c  *Client
	on *link
	fd int64
}

// OpenFile opens a file on the submit side; flags are those of open(2). A
// relative name is relative to the job's initial directory.
func (c *Client) OpenFile(ctx context.Context, name string, flags int, mode fs.FileMode) (*RemoteFile, error) {
	a := ask(ctx, c, call{name: "open", number: numOpen, put: func(s *cedar.Stream) {
		s.PutInt(cedar.EncodeOpenFlags(flags))
		s.PutInt(int64(mode.Perm()))
		s.PutString(name)
	}}, none)
	if a.err != nil {
		return nil, fmt.Errorf("opening %q on the submit side: %w", name, a.err)
	}
	return &RemoteFile{c: c, on: a.on, fd: a.result}, nil
}

// ReadAt reads at an offset; 0 bytes mean the end of the file.
func (f *RemoteFile) ReadAt(ctx context.Context, p []byte, offset int64) (int, error) {
	if err := f.seek(ctx, offset); err != nil {
		return 0, err
	}
	want := min(len(p), maxFileIO)
	a := ask(ctx, f.c, call{on: f.on, name: "read", number: numRead, put: func(s *cedar.Stream) {
		s.PutInt(f.fd)
		s.PutInt(int64(want))
	}}, func(s *cedar.Stream, n int64) ([]byte, error) { return getBytes(s, n, want) })
	return copy(p, a.value), a.err
}

// WriteAt writes at an offset. A shadow refuses to write nothing, so an empty p
// is not sent.
func (f *RemoteFile) WriteAt(ctx context.Context, p []byte, offset int64) (int, error) {
	done := 0
	for done < len(p) {
		piece := p[done:min(len(p), done+maxFileIO)]
		if err := f.seek(ctx, offset+int64(done)); err != nil {
			return done, err
		}
		n, err := f.c.tell(ctx, call{on: f.on, name: "write", number: numWrite, put: func(s *cedar.Stream) {
			s.PutInt(f.fd)
			s.PutInt(int64(len(piece)))
			s.PutBytes(piece)
		}})
		if err != nil {
			return done, err
		}
		if n != int64(len(piece)) {
			return done + int(max(0, min(n, int64(len(piece))))), fmt.Errorf("shadow call write: %d of %d bytes were written", n, len(piece))
		}
		done += len(piece)
	}
	return done, nil
}

// Size returns the length of the file.
func (f *RemoteFile) Size(ctx context.Context) (int64, error) { return f.lseek(ctx, 0, io.SeekEnd) }

// Sync flushes written data to the disk of the submit side.
func (f *RemoteFile) Sync(ctx context.Context) error { return f.simple(ctx, "fsync", numFsync) }

// Close closes the file.
func (f *RemoteFile) Close(ctx context.Context) error { return f.simple(ctx, "close", numClose) }

func (f *RemoteFile) simple(ctx context.Context, name string, number int64) error {
	_, err := f.c.tell(ctx, call{on: f.on, name: name, number: number, put: func(s *cedar.Stream) { s.PutInt(f.fd) }})
	return err
}

func (f *RemoteFile) seek(ctx context.Context, offset int64) error {
	at, err := f.lseek(ctx, offset, io.SeekStart)
	if err == nil && at != offset {
		err = fmt.Errorf("shadow call lseek: the shadow is at %d, not at %d", at, offset)
	}
	return err
}

func (f *RemoteFile) lseek(ctx context.Context, offset int64, whence int) (int64, error) {
	return f.c.tell(ctx, call{on: f.on, name: "lseek", number: numLseek, put: func(s *cedar.Stream) {
		s.PutInt(f.fd)
		s.PutInt(offset)
		s.PutInt(int64(whence))
	}})
}
