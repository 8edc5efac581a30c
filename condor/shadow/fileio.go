package shadow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"podstarter/internal/cedar"
)

// FileCall is one of the calls on files of the submit side that a job makes through
// its chirp proxy (condor_includes/condor_sys.h,
// condor_shadow.V6.1/NTreceivers.cpp). The shadow decides what is permitted.
type FileCall int

// The calls, with the fields of their requests; fd is a number from FileOpen. An
// arrow marks calls whose answer has more than a result.
const (
	FileAccess     FileCall = iota + 1 // path, mode
	FileChmod                          // path, mode
	FileChown                          // path, uid, gid
	FileClose                          // fd
	FileConstrain                      // expression
	FileFchmod                         // fd, mode
	FileFchown                         // fd, uid, gid
	FileFstat                          // fd → text
	FileFstatfs                        // fd → text
	FileFsync                          // fd
	FileFtruncate                      // fd, length
	FileGetdir                         // path → text
	FileGetfile                        // path → bytes
	FileGetlongdir                     // path → text
	FileLchown                         // path, uid, gid
	FileLink                           // path, path
	FileLookup                         // path → text, where the shadow finds it
	FileLseek                          // fd, offset, whence; the result is the position
	FileLstat                          // path → text
	FileMkdir                          // path, mode
	FileOpen                           // flags, mode, path; the result is an fd
	FilePread                          // fd, length, offset → bytes
	FilePwrite                         // fd, length, offset, then bytes
	FileRead                           // fd, length → bytes
	FileReadlink                       // path, length → bytes
	FileRename                         // path, path
	FileRmall                          // path
	FileRmdir                          // path
	FileSread                          // fd, length, offset, stride, skip → bytes
	FileStat                           // path → text
	FileStatfs                         // path → text
	FileSwrite                         // fd, length, offset, stride, skip, then bytes
	FileSymlink                        // target, path
	FileTruncate                       // path, length
	FileUnlink                         // path
	FileUtime                          // path, access time, modification time
	FileWhoami                         // length → bytes
	FileWhoareyou                      // host, length → bytes
	FileWrite                          // fd, length, then bytes
)

// answerKind is what follows the result of a FileCall.
type answerKind int

const (
	bare   answerKind = iota
	padded            // exactly statRoom bytes, text that ends at the first NUL
	text              // a string
	octets            // as many bytes as the result says
)

// statRoom is the length of the answers of the stat calls, in bytes.
const statRoom = 1024

var fileCalls = [...]struct {
	name   string
	number int64
	answer answerKind
}{
	FileAccess:     {"access", 1, bare},
	FileChmod:      {"chmod", 7, bare},
	FileChown:      {"chown", 8, bare},
	FileClose:      {"close", numClose, bare},
	FileConstrain:  {"constrain", CallConstrain, bare},
	FileFchmod:     {"fchmod", 19, bare},
	FileFchown:     {"fchown", 20, bare},
	FileFstat:      {"fstat", 24, padded},
	FileFstatfs:    {"fstatfs", 25, padded},
	FileFsync:      {"fsync", numFsync, bare},
	FileFtruncate:  {"ftruncate", 27, bare},
	FileGetdir:     {"getdir", 296, text},
	FileGetfile:    {"getfile", 293, octets},
	FileGetlongdir: {"getlongdir", 295, text},
	FileLchown:     {"lchown", 251, bare},
	FileLink:       {"link", 52, bare},
	FileLookup:     {"get_file_info_new", -74, text},
	FileLseek:      {"lseek", numLseek, bare},
	FileLstat:      {"lstat", 55, padded},
	FileMkdir:      {"mkdir", 58, bare},
	FileOpen:       {"open", numOpen, bare},
	FilePread:      {"pread", 289, octets},
	FilePwrite:     {"pwrite", 290, bare},
	FileRead:       {"read", numRead, octets},
	FileReadlink:   {"readlink", 72, octets},
	FileRename:     {"rename", 78, bare},
	FileRmall:      {"rmall", 292, bare},
	FileRmdir:      {"rmdir", 79, bare},
	FileSread:      {"sread", 299, octets},
	FileStat:       {"stat", 108, padded},
	FileStatfs:     {"statfs", 109, padded},
	FileSwrite:     {"swrite", 291, bare},
	FileSymlink:    {"symlink", 111, bare},
	FileTruncate:   {"truncate", 113, bare},
	FileUnlink:     {"unlink", 115, bare},
	FileUtime:      {"utime", 242, bare},
	FileWhoami:     {"whoami", CallWhoAmI, octets},
	FileWhoareyou:  {"whoareyou", 298, octets},
	FileWrite:      {"write", numWrite, bare},
}

// String returns HTCondor's name of the call.
func (f FileCall) String() string {
	if f < 1 || int(f) >= len(fileCalls) {
		return fmt.Sprintf("FileCall(%d)", int(f))
	}
	return fileCalls[f].name
}

// Field is one field of a request: an Int or a Text.
type Field interface{ put(*cedar.Stream) }

// Int is a number that the shadow reads as 32 or 64 bits.
type Int int64

// Text is a path, or other text without a NUL.
type Text string

func (i Int) put(s *cedar.Stream)  { s.PutInt(int64(i)) }
func (t Text) put(s *cedar.Stream) { s.PutString(string(t)) }

// FileRequest is a FileCall with its fields and data.
type FileRequest struct {
	Call   FileCall
	Fields []Field
	// Origin says where the request's fd comes from. If that connection is gone the
	// call fails with [ErrLost]: for another shadow the number may mean another
	// file.
	Origin Origin
	// Body supplies the bytes behind the fields of a request, exactly Size of them.
	// Other calls wait while it is read, so it must not block; if it fails, the
	// connection is lost.
	Body io.Reader
	Size int64
	// Into receives the bytes of an answer, while other calls wait.
	Into io.Writer
}

// Origin is the connection on which a file was opened. The zero value is any.
type Origin struct{ on *link }

// FileAnswer is the result of a FileCall.
type FileAnswer struct {
	Origin Origin // of a result that is an fd
	Result int64
	Text   string // of those that answer with text
}

// MaxFileBytes bounds the bytes of one request or answer. Shadows of newer
// releases refuse more themselves (NTreceivers.cpp: MAX_REMOTE_BUF_SIZE).
const MaxFileBytes = 256 << 20

// mostFileBytes is the most that an older shadow can answer with, for a file that
// was larger than permitted.
const mostFileBytes = 1<<31 - 1

// ErrFileBytes is in the error chain of a call whose answer has more than
// MaxFileBytes bytes. The answer was dropped.
var ErrFileBytes = errors.New("more bytes than one call may transfer")

// File makes a FileCall. A shadow's refusal is a *[CallError]. File checks ctx only
// before it begins: Body and Into must be the caller's again when it returns.
func (c *Client) File(ctx context.Context, r FileRequest) (FileAnswer, error) {
	if r.Call < 1 || int(r.Call) >= len(fileCalls) {
		return FileAnswer{}, fmt.Errorf("shadow call: unknown call %s", r.Call)
	}
	if err := ctx.Err(); err != nil {
		return FileAnswer{}, fmt.Errorf("shadow call %s: %w", r.Call, context.Cause(ctx))
	}
	about := fileCalls[r.Call]
	type taken struct {
		text string
		bad  error // that the connection survived
	}
	a := ask(context.WithoutCancel(ctx), c, call{on: r.Origin.on, name: about.name, number: about.number, put: r.put},
		func(s *cedar.Stream, n int64) (t taken, err error) {
			switch about.answer {
			case padded:
				var b []byte
				b, err = s.GetBytes(statRoom)
				b, _, _ = bytes.Cut(b, []byte{0})
				t.text = string(b)
			case text:
				t.text, err = s.GetString()
			case octets:
				t.bad, err = getOctets(s, n, r.Into)
			}
			return t, err
		})
	if a.err == nil && a.value.bad != nil {
		a.err = fmt.Errorf("shadow call %s: answer of %d bytes: %w", r.Call, a.result, a.value.bad)
	}
	return FileAnswer{Origin: Origin{a.on}, Result: a.result, Text: a.value.text}, a.err
}

// put writes the fields and then the body: all requests have this order.
func (r FileRequest) put(s *cedar.Stream) {
	for _, f := range r.Fields {
		f.put(s)
	}
	if r.Size <= 0 {
		return
	}
	piece := make([]byte, min(r.Size, 64<<10))
	for left := r.Size; left > 0; {
		n, err := io.ReadFull(r.Body, piece[:min(left, int64(len(piece)))])
		if err != nil {
			s.Close() // half a message cannot be taken back
			return
		}
		s.PutBytes(piece[:n])
		left -= int64(n)
	}
}

// getOctets reads n bytes. Bytes that into does not accept are dropped, so that the
// connection stays in step.
func getOctets(s *cedar.Stream, n int64, into io.Writer) (bad, err error) {
	switch {
	case n > mostFileBytes:
		return nil, fmt.Errorf("the shadow announces %d bytes", n)
	case n > MaxFileBytes:
		bad = ErrFileBytes
	case into == nil:
		into = io.Discard
	}
	for n > 0 {
		piece, err := s.GetBytes(int(min(n, 64<<10)))
		if err != nil {
			return nil, err
		}
		n -= int64(len(piece))
		if bad == nil {
			_, bad = into.Write(piece)
		}
	}
	return bad, nil
}

// Errno returns why a call failed, as an errno: the shadow's own; ETIMEDOUT if
// there is no shadow to ask, as in HTCondor's own starter
// (condor_starter.V6.1/NTsenders.cpp); the local file system's error about Into; or
// EIO.
func Errno(err error) syscall.Errno {
	var errno syscall.Errno
	switch {
	case errors.Is(err, ErrLost):
		return syscall.ETIMEDOUT
	case errors.Is(err, ErrFileBytes):
		return syscall.EFBIG
	case errors.As(err, &errno):
		return errno
	}
	return syscall.EIO
}
