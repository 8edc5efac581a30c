package payload

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// FileReader reads from a connection and keeps the files that come with the bytes, in their
// order, until Take asks for them.
type FileReader struct {
	conn *net.UnixConn
	max  int

	mu    sync.Mutex
	files []*os.File
	ended bool // keeps no more files
}

// ErrTooManyFiles ends a connection whose peer sends more files than its requests allow.
var ErrTooManyFiles = errors.New("the peer sent more open files than it may")

// NewFileReader makes one that keeps at most max files.
func NewFileReader(conn *net.UnixConn, max int) *FileReader { return &FileReader{conn: conn, max: max} }

// Read implements io.Reader.
func (r *FileReader) Read(p []byte) (int, error) {
	control := make([]byte, unix.CmsgSpace(4*2*MaxExecFiles))
	n, used, flags, _, err := r.conn.ReadMsgUnix(p, control)
	if kept := r.take(control[:max(used, 0)]); !kept || flags&unix.MSG_CTRUNC != 0 {
		return 0, ErrTooManyFiles
	}
	if n <= 0 && err == nil && len(p) > 0 {
		err = io.EOF // ReadMsgUnix does not say so
	}
	return max(n, 0), err
}

func (r *FileReader) take(control []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(control) > 0 {
		room := r.max + 1
		if r.ended {
			room = 0
		}
		files, _ := TakeFiles(control, room, "passed")
		r.files = append(r.files, files...)
	}
	return len(r.files) <= r.max
}

// Take gives the n oldest files to the caller; nil if there are fewer.
func (r *FileReader) Take(n int) []*os.File {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n < 0 || n > len(r.files) {
		return nil
	}
	taken := r.files[:n:n]
	r.files = r.files[n:]
	return taken
}

// Close closes the files that nobody took, and any that still arrive.
func (r *FileReader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for _, f := range r.files {
		f.Close()
	}
	r.files = nil
}
