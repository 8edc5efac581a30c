package cedar

import (
	"errors"
	"fmt"
	"io"
)

const (
	// fileChunk is how much of a file travels in one message. HTCondor itself
	// sends 256 KiB (reli_sock.cpp: AES_FILE_BUF_SZ); receivers go by what the sender
	// says. With more, HTCondor's receiver spends more time:
	// it has two buffers for each packet, malloc(3) gives back to the kernel what
	// is more than 128 KiB, and gets new pages for the next. Below 64 KiB there are
	// more packets, and writes that fit the kernel's caches less well.
	fileChunk = 64 << 10
	// filePiece is how much of a file is handed on at once when it is received.
	filePiece = 256 << 10
	// emptyFileMark follows an empty file (reli_sock.h: PUT_FILE_EOM_NUM).
	emptyFileMark = 666
)

// ErrFileTooLarge reports that a peer announced a file greater than the limit
// of the receiver. None of it was read, and the connection cannot be used any
// more (reli_sock.h: GET_FILE_MAX_BYTES_EXCEEDED).
var ErrFileTooLarge = errors.New("file is greater than the receiver allows")

// FileReadError says that the source of PutFile failed, or ended early, in
// the middle of the file. The protocol has no way to take back a size that
// was announced, so the connection cannot be used any more.
type FileReadError struct {
	Sent, Size int64
	Err        error
}

func (e *FileReadError) Error() string {
	return fmt.Sprintf("read the file to send at byte %d of %d: %v", e.Sent, e.Size, e.Err)
}

// Unwrap returns the error of the source; io.ErrUnexpectedEOF if it was
// shorter than announced.
func (e *FileReadError) Unwrap() error { return e.Err }

// FileWriteError says that the destination of GetFile failed. The rest of the
// file was received and thrown away: the stream stays usable (reli_sock.h:
// GET_FILE_WRITE_FAILED).
type FileWriteError struct {
	Written, Size int64
	Err           error
}

func (e *FileWriteError) Error() string {
	return fmt.Sprintf("write the received file at byte %d of %d: %v", e.Written, e.Size, e.Err)
}

// Unwrap returns the error of the destination.
func (e *FileWriteError) Unwrap() error { return e.Err }

// PutFile puts size bytes of r as a file. Its head joins the values that the
// current message has already and ends that message. The following
// EndMessage is part of the protocol and must be called: it sends nothing
// behind a file with contents, and the mark of an empty file otherwise
// (reli_sock.cpp:put_file).
func (s *Stream) PutFile(r io.Reader, size int64) error {
	if size < 0 {
		return fmt.Errorf("put file of %d bytes: %w", size, errNegative)
	}
	s.PutInt(size)
	if s.Encrypted() {
		s.PutInt(fileChunk)
	}
	if err := s.EndMessage(); err != nil {
		return err
	}
	if size == 0 {
		s.PutInt(emptyFileMark)
		return s.send.err
	}
	for sent := int64(0); sent < size; {
		n := int(min(fileChunk, size-sent))
		var err error
		if s.Encrypted() {
			err = s.putChunk(r, n)
		} else {
			err = s.putRaw(r, n)
		}
		if err != nil {
			var broken *sourceError
			if errors.As(err, &broken) {
				err = &FileReadError{Sent: sent, Size: size, Err: broken.err}
				s.fail(err)
			}
			return err
		}
		sent += int64(n)
	}
	if !s.send.gather {
		s.flush()
	}
	s.send.skipEOM = true
	return s.send.err
}

// PutEmptyFile puts a file without contents, which is also what a sender puts
// that cannot read its file (reli_sock.cpp:put_empty_file).
func (s *Stream) PutEmptyFile() error { return s.PutFile(nil, 0) }

// sourceError marks an error of the file among those of the connection.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }

func readSource(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return &sourceError{err}
	}
	return nil
}

// putChunk puts n bytes of r as one message, read to where they are encrypted
// and sent from. It is one packet unless packets are to be smaller.
func (s *Stream) putChunk(r io.Reader, n int) error {
	o := &s.send
	for n > 0 && o.err == nil {
		part := min(n, o.files)
		s.beginPacket(part)
		at := len(o.buf)
		o.buf = o.buf[:at+part]
		if err := readSource(r, o.buf[at:]); err != nil {
			o.buf, o.open = o.buf[:o.open], -1
			return err
		}
		n -= part
		s.endPacket(n == 0)
		if len(o.buf) >= flushSize {
			s.flush()
		}
	}
	return o.err
}

// putRaw sends n bytes of r outside of any message.
func (s *Stream) putRaw(r io.Reader, n int) error {
	if err := s.Flush(); err != nil {
		return err
	}
	b := s.scratch(n)
	if err := readSource(r, b); err != nil {
		return err
	}
	if err := s.write(b); err != nil {
		s.fail(err)
	}
	return s.send.err
}

// GetFile takes a file from the stream and writes it to w; it returns the
// bytes written. A file of more than limit bytes is refused with
// ErrFileTooLarge, unless limit is negative. If w fails, the rest is read and
// thrown away and the error is a *FileWriteError; every other error leaves
// the stream unusable. The following EndOfMessage is part of the protocol and
// must be called (reli_sock.cpp:get_file).
func (s *Stream) GetFile(w io.Writer, limit int64) (int64, error) {
	f, err := s.OpenFile(limit)
	if err != nil {
		return 0, err
	}
	var written int64
	var failed error
	for {
		b, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return written, err
		}
		if failed != nil {
			continue
		}
		n, err := w.Write(b)
		written += int64(n)
		if err == nil && n < len(b) {
			err = io.ErrShortWrite
		}
		if err != nil {
			failed = &FileWriteError{Written: written, Size: f.Size(), Err: err}
		}
	}
	return written, failed
}

// File is a file that arrives on a stream. It must be read to its end before
// anything else is taken from the stream.
type File struct {
	s     *Stream
	size  int64
	chunk int64 // greatest message
	done  int64
	inMsg int64 // bytes taken of the current message
	over  bool
}

// OpenFile takes the head of a file from the stream. With limit >= 0 a file
// of more bytes is refused with ErrFileTooLarge.
func (s *Stream) OpenFile(limit int64) (*File, error) {
	size, err := s.GetInt()
	if err != nil {
		return nil, err
	}
	f := &File{s: s, size: size, chunk: size}
	if s.Encrypted() {
		if f.chunk, err = s.GetInt(); err != nil {
			return nil, err
		}
	}
	if err := s.EndOfMessage(); err != nil {
		return nil, err
	}
	if size < 0 || (size > 0 && f.chunk <= 0) {
		s.recv.err = s.violation("file of %d bytes in messages of %d bytes", size, f.chunk)
		return nil, s.recv.err
	}
	if limit >= 0 && size > limit {
		s.recv.err = fmt.Errorf("receive a file of %d bytes, at most %d are allowed: %w", size, limit, ErrFileTooLarge)
		return nil, s.recv.err
	}
	if size >= nearFile {
		s.limitWindow()
	}
	return f, nil
}

// Size returns the number of bytes that the file has.
func (f *File) Size() int64 { return f.size }

// Next returns the next piece of the file, io.EOF behind the last one. The
// piece is valid until the next use of the stream.
func (f *File) Next() ([]byte, error) {
	if f.over {
		return nil, io.EOF
	}
	if f.done == f.size {
		return nil, f.finish()
	}
	s := f.s
	b := s.scratch(int(min(filePiece, f.size-f.done)))
	n := 0
	for n < len(b) {
		s.expect(f.size - f.done - int64(n))
		m, err := f.read(b[n:])
		if err != nil {
			return nil, err
		}
		n += m
	}
	f.done += int64(n)
	if f.done == f.size {
		s.expect(0)
		s.setWakeup()
	}
	return b[:n], nil
}

// read takes some bytes; it ends messages as they come to an end.
func (f *File) read(p []byte) (int, error) {
	s := f.s
	if !s.Encrypted() {
		return s.readRaw(p)
	}
	p = p[:min(int64(len(p)), f.chunk-f.inMsg)]
	n, err := s.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	f.inMsg += int64(n)
	if s.messageSpent() {
		if err := s.EndOfMessage(); err != nil {
			return 0, err
		}
		f.inMsg = 0
		return n, nil
	}
	if f.inMsg == f.chunk {
		s.recv.err = s.violation("message of more than the %d bytes announced for pieces of a file", f.chunk)
		return 0, s.recv.err
	}
	return n, nil
}

// finish does what comes behind the contents.
func (f *File) finish() error {
	s := f.s
	f.over = true
	if f.inMsg > 0 {
		s.recv.err = s.violation("file of more than the %d bytes announced", f.size)
		return s.recv.err
	}
	if f.size > 0 {
		s.recv.skipEOM = true
		return io.EOF
	}
	mark, err := s.GetInt()
	if err != nil {
		return noEOF(err)
	}
	if mark != emptyFileMark {
		s.recv.err = s.violation("number %d behind an empty file, %d belongs there", mark, emptyFileMark)
		return s.recv.err
	}
	return io.EOF
}

// messageSpent reports whether the current message is known to have no more
// bytes.
func (s *Stream) messageSpent() bool {
	in := &s.recv
	return in.inMessage && in.last && in.sealed == nil && len(in.plain) == 0
}

// readRaw reads bytes that are in no message.
func (s *Stream) readRaw(p []byte) (int, error) {
	in := &s.recv
	if in.err != nil {
		return 0, in.err
	}
	if in.inMessage {
		return 0, fmt.Errorf("receive unframed bytes from %s inside a message", s.peer)
	}
	for in.r == in.w {
		if err := s.readMore(); err != nil {
			in.err = noEOF(err)
			return 0, in.err
		}
	}
	n := copy(p, in.buf[in.r:in.w])
	in.r += n
	return n, nil
}

// scratch returns n <= filePiece bytes that are kept for the next file.
func (s *Stream) scratch(n int) []byte {
	if cap(s.bulk) < n {
		s.bulk = make([]byte, n)
	}
	return s.bulk[:n]
}
