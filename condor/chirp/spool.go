package chirp

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// inMemory is how many bytes of a request or an answer are kept in memory, for
// each connection.
const inMemory = 256 << 10

// spool keeps the bytes of one request or answer between client and shadow, so
// that neither waits for the other: a client that does not read or write must not
// block the one connection to the shadow. What does not fit into memory goes into
// a file without a name.
type spool struct {
	file func() (*os.File, error) // makes one
	head bytes.Buffer
	tail *os.File
	size int64
}

// Write implements io.Writer.
func (s *spool) Write(p []byte) (int, error) {
	if s.tail == nil && s.head.Len()+len(p) > inMemory {
		f, err := s.file()
		if err != nil {
			return 0, fmt.Errorf("keep bytes of a chirp request in a temporary file: %w", err)
		}
		s.tail = f
	}
	var n int
	var err error
	if s.tail != nil {
		n, err = s.tail.Write(p)
	} else {
		n, err = s.head.Write(p)
	}
	s.size += int64(n)
	return n, err
}

// large reports whether a part is in a file.
func (s *spool) large() bool { return s.tail != nil }

// reader returns all bytes from the first one on.
func (s *spool) reader() io.Reader {
	head := bytes.NewReader(s.head.Bytes())
	if s.tail == nil {
		return head
	}
	return io.MultiReader(head, io.NewSectionReader(s.tail, 0, s.size-int64(s.head.Len())))
}

func (s *spool) close() {
	if s.tail != nil {
		s.tail.Close()
	}
}
