package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"podstarter/sandbox/beneath"
)

// ErrLongList is in the chain of an error of WriteList if the list is cut off.
var ErrLongList = errors.New("the list is longer than it may be")

// WriteList writes the names of all that is below the scratch directory into a file below
// it, as the payload, one a line, "./" before and a "/" behind a directory. The file is
// among them. Of more than limit bytes the first are written. A file of that name is
// overwritten.
func (s *Sandbox) WriteList(ctx context.Context, name string, limit int64) error {
	err := s.payload.Do(func() error {
		return s.write(name, func(w *bufio.Writer) error {
			written := int64(0)
			return beneath.List(ctx, s.inside.FD(), func(name string, isDir bool) error {
				line := "./" + name
				if isDir {
					line += "/"
				}
				if written += int64(len(line)) + 1; written > limit {
					return fmt.Errorf("%w: %d bytes", ErrLongList, limit)
				}
				_, err := w.WriteString(line + "\n")
				return err
			})
		})
	})
	if err != nil {
		return fmt.Errorf("write the names of the files of the sandbox into %s: %w", name, err)
	}
	return nil
}

// OverwriteFile writes a file below the scratch directory as the payload. One that exists
// keeps its mode, and a link that leads to another file of the sandbox is followed.
func (s *Sandbox) OverwriteFile(name string, data []byte) error {
	err := s.payload.Do(func() error {
		return s.write(name, func(w *bufio.Writer) error {
			_, err := w.Write(data)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("write %s into the sandbox: %w", name, err)
	}
	return nil
}

// write writes a file, as the identity of the calling thread.
func (s *Sandbox) write(name string, write func(*bufio.Writer) error) error {
	const mode fs.FileMode = 0o644
	f, err := s.inside.Create(name, uint32(mode))
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 64<<10)
	err = write(w)
	return errors.Join(err, w.Flush(), f.Close())
}
