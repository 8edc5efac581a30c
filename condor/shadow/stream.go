package shadow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// streamChunk is how many bytes of a streamed file are sent at a time: the size of
// a pipe.
const streamChunk = 64 << 10

// streamMode is the mode of new files for streamed output, less the shadow's umask
// (condor_starter.V6.1/stream_handler.cpp:StreamHandler::Init).
const streamMode = 0o666

// Stream is a standard file of a job that is copied to or from a file of the
// submit side while the job runs. It belongs to one goroutine. The end of a
// context ends only the waiting for a shadow that is away; it does not interrupt a
// call, which would cost the connection.
type Stream struct {
	c      *Client
	name   string
	flags  int // to open it again
	file   *RemoteFile
	offset int64 // of the data copied so far
}

// OpenOutput opens a file of the submit side for streamed output. The file is
// truncated unless more is set; then output is appended. It does not use O_APPEND:
// data written again after a lost connection goes to the same place.
func (c *Client) OpenOutput(ctx context.Context, name string, more bool) (*Stream, error) {
	s := &Stream{c: c, name: name, flags: syscall.O_CREAT | syscall.O_WRONLY}
	flags := s.flags
	if !more {
		flags |= syscall.O_TRUNC
	}
	err := s.again(ctx, func() error {
		err := s.open(ctx, flags)
		if err == nil && more {
			s.offset, err = s.file.Size(context.WithoutCancel(ctx))
		}
		return err
	})
	return s, err
}

// OpenInput opens a file of the submit side to stream input from.
func (c *Client) OpenInput(ctx context.Context, name string) (*Stream, error) {
	s := &Stream{c: c, name: name, flags: syscall.O_RDONLY}
	return s, s.again(ctx, func() error { return s.open(ctx, s.flags) })
}

// again makes calls, waiting for a shadow if needed, and makes them again on the
// next connection if one is lost.
func (s *Stream) again(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !errors.Is(err, ErrLost) {
			return err
		}
		if err := s.c.Await(ctx); err != nil {
			return err
		}
	}
}

func (s *Stream) open(ctx context.Context, flags int) (err error) {
	s.file, err = s.c.OpenFile(context.WithoutCancel(ctx), s.name, flags, streamMode)
	return err
}

// Write copies bytes to the file. If the connection is lost it waits for a shadow,
// or the end of ctx, and continues at the same offset; it fails if the file has
// lost data written before (StreamHandler::VerifyOutputFile).
func (s *Stream) Write(ctx context.Context, p []byte) error {
	return s.insist(ctx, func() error {
		n, err := s.file.WriteAt(context.WithoutCancel(ctx), p, s.offset)
		if err == nil {
			s.offset += int64(n)
		}
		return err
	})
}

// Read reads the next bytes of the file; io.EOF is its end. It waits for a shadow
// that is away as Write does.
func (s *Stream) Read(ctx context.Context, p []byte) (n int, err error) {
	err = s.insist(ctx, func() (err error) {
		n, err = s.file.ReadAt(context.WithoutCancel(ctx), p, s.offset)
		return err
	})
	if err == nil && n == 0 {
		err = io.EOF
	}
	s.offset += int64(n)
	return n, err
}

// Finish flushes output to the disk of the submit side and closes the file. A
// failure to close it is only logged.
func (s *Stream) Finish(ctx context.Context) error {
	if s.flags != syscall.O_RDONLY {
		if err := s.insist(ctx, func() error { return s.file.Sync(context.WithoutCancel(ctx)) }); err != nil {
			return err
		}
	}
	if err := s.file.Close(context.WithoutCancel(ctx)); err != nil {
		s.c.log.Info("A streamed file could not be closed", "name", s.name, "error", err)
	}
	return nil
}

// insist does something to the open file and, if a shadow has come back, to the
// file opened again.
func (s *Stream) insist(ctx context.Context, do func() error) error {
	first := true
	err := s.again(ctx, func() error {
		if !first {
			if err := s.reopen(ctx); err != nil {
				return err
			}
		}
		first = false
		return do()
	})
	if err != nil {
		return fmt.Errorf("streaming %q: %w", s.name, err)
	}
	return nil
}

// reopen opens the file again at a shadow that has come back.
func (s *Stream) reopen(ctx context.Context) error {
	if err := s.open(ctx, s.flags); err != nil || s.flags == syscall.O_RDONLY {
		return err
	}
	size, err := s.file.Size(context.WithoutCancel(ctx))
	if err == nil && size < s.offset {
		err = fmt.Errorf("the file has %d bytes on the submit side, but %d had been written", size, s.offset)
	}
	return err
}

// CopyOutput copies r to its end, and finishes the stream.
func (s *Stream) CopyOutput(ctx context.Context, r io.Reader) error {
	chunk := make([]byte, streamChunk)
	for {
		n, err := r.Read(chunk)
		if n > 0 {
			if err := s.Write(ctx, chunk[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return s.Finish(ctx)
		case err != nil:
			return fmt.Errorf("streaming %q: read from the job: %w", s.name, err)
		}
	}
}

// CopyInput copies the file to w, to its end, or until w accepts no more.
func (s *Stream) CopyInput(ctx context.Context, w io.Writer) error {
	chunk := make([]byte, streamChunk)
	for {
		n, err := s.Read(ctx, chunk)
		if errors.Is(err, io.EOF) {
			return s.Finish(ctx)
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(chunk[:n]); err != nil {
			s.c.log.Info("The job reads no more input", "name", s.name, "error", err)
			return s.Finish(ctx)
		}
	}
}
