package shadow

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// room is an answer of the stat calls.
func room(text string) []byte { return append([]byte(text), make([]byte, statRoom-len(text))...) }

func TestFileCalls(t *testing.T) {
	line := "1 2 3 4 5 6 7 8 9 10 11 12 13\n"
	for _, tt := range []struct {
		r              FileRequest
		request, reply []byte
		want           FileAnswer
		bytes          string
		errno          syscall.Errno
	}{
		{FileRequest{Call: FileOpen, Fields: []Field{Int(0x301), Int(0o644), Text("a b")}},
			message(66, 0x301, 0o644, "a b"), message(5), FileAnswer{Result: 5}, "", 0},
		{FileRequest{Call: FileOpen, Fields: []Field{Int(0), Int(0), Text("x")}},
			message(66, 0, 0, "x"), message(-1, 2), FileAnswer{Result: -1}, "", syscall.ENOENT},
		{FileRequest{Call: FileClose, Fields: []Field{Int(5)}}, message(10, 5), message(0), FileAnswer{}, "", 0},
		{FileRequest{Call: FileRename, Fields: []Field{Text("a"), Text("b")}}, message(78, "a", "b"), message(0), FileAnswer{}, "", 0},
		{FileRequest{Call: FileRmdir, Fields: []Field{Text("a")}}, message(79, "a"), message(-1, 41), FileAnswer{Result: -1}, "", syscall.ENOTEMPTY},
		{FileRequest{Call: FileFstat, Fields: []Field{Int(5)}}, message(24, 5), message(0, room(line)), FileAnswer{Text: line}, "", 0},
		{FileRequest{Call: FileFstatfs, Fields: []Field{Int(5)}}, message(25, 5), message(0, room("1 2 3\n")), FileAnswer{Text: "1 2 3\n"}, "", 0},
		{FileRequest{Call: FileStat, Fields: []Field{Text("a")}}, message(108, "a"), message(-1, 13), FileAnswer{Result: -1}, "", syscall.EACCES},
		{FileRequest{Call: FileLookup, Fields: []Field{Text("a")}}, message(-74, "a"), message(0, "/home/a"), FileAnswer{Text: "/home/a"}, "", 0},
		{FileRequest{Call: FileGetdir, Fields: []Field{Text(".")}}, message(296, "."), message(5, "a\nb\n\n"), FileAnswer{Result: 5, Text: "a\nb\n\n"}, "", 0},
		{FileRequest{Call: FileRead, Fields: []Field{Int(5), Int(100)}}, message(71, 5, 100), message(3, []byte("abc")), FileAnswer{Result: 3}, "abc", 0},
		{FileRequest{Call: FileRead, Fields: []Field{Int(5), Int(100)}}, message(71, 5, 100), message(0), FileAnswer{}, "", 0},
		{FileRequest{Call: FileGetfile, Fields: []Field{Text("a")}}, message(293, "a"), message(3, []byte("abc")), FileAnswer{Result: 3}, "abc", 0},
		{FileRequest{Call: FileGetfile, Fields: []Field{Text("a")}}, message(293, "a"), message(-1, 27), FileAnswer{Result: -1}, "", syscall.EFBIG},
		{FileRequest{Call: FilePread, Fields: []Field{Int(5), Int(2), Int(1 << 40)}}, message(289, 5, 2, 1<<40), message(2, []byte("bc")), FileAnswer{Result: 2}, "bc", 0},
		{FileRequest{Call: FileWrite, Fields: []Field{Int(5), Int(3)}, Body: strings.NewReader("abcdef"), Size: 3},
			message(120, 5, 3, []byte("abc")), message(3), FileAnswer{Result: 3}, "", 0},
		{FileRequest{Call: FileSwrite, Fields: []Field{Int(5), Int(3), Int(0), Int(1), Int(2)}, Body: strings.NewReader("abc"), Size: 3},
			message(291, 5, 3, 0, 1, 2, []byte("abc")), message(-1, 28), FileAnswer{Result: -1}, "", syscall.ENOSPC},
		{FileRequest{Call: FileReadlink, Fields: []Field{Text("l"), Int(10)}}, message(72, "l", 10), message(1, []byte("a")), FileAnswer{Result: 1}, "a", 0},
		{FileRequest{Call: FileWhoareyou, Fields: []Field{Text("h"), Int(10)}}, message(298, "h", 10), message(7, []byte("UNKNOWN")), FileAnswer{Result: 7}, "UNKNOWN", 0},
		{FileRequest{Call: FileUtime, Fields: []Field{Text("h"), Int(10), Int(-1)}}, message(242, "h", 10, -1), message(0), FileAnswer{}, "", 0},
		{FileRequest{Call: FileConstrain, Fields: []Field{Text("x > 1")}}, message(287, "x > 1"), message(0), FileAnswer{}, "", 0},
	} {
		t.Run(tt.r.Call.String(), func(t *testing.T) {
			c, conn := connect(t)
			var into bytes.Buffer
			tt.r.Into = &into
			done := expect(t, conn, tt.request, tt.reply)
			got, err := c.File(context.Background(), tt.r)
			<-done
			if tt.errno == 0 && err != nil || tt.errno != 0 && (err == nil || Errno(err) != tt.errno) || errors.Is(err, ErrLost) {
				t.Fatalf("error %v, want %v", err, tt.errno)
			}
			got.Origin = Origin{}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(Origin{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if into.String() != tt.bytes {
				t.Errorf("bytes %q, want %q", into.String(), tt.bytes)
			}
			alive(t, c, conn)
		})
	}
}

// alive checks that the stream is in step for the next call.
func alive(t *testing.T, c *Client, conn io.ReadWriter) {
	t.Helper()
	go func() {
		got := make([]byte, len(message(297, 32)))
		if _, err := io.ReadFull(conn, got); err == nil {
			_, _ = conn.Write(message(6, []byte("CONDOR")))
		}
	}()
	if who, err := c.WhoAmI(context.Background()); err != nil || who != "CONDOR" {
		t.Errorf("the next call: %q, %v", who, err)
	}
}

// TestFileAnswerThatCannotBeKept drops an answer and goes on.
func TestFileAnswerThatCannotBeKept(t *testing.T) {
	c, conn := connect(t)
	done := expect(t, conn, message(71, 5, 9), message(3, []byte("abc")))
	_, err := c.File(context.Background(), FileRequest{Call: FileRead, Fields: []Field{Int(5), Int(9)}, Into: iotest.TruncateWriter(failing{}, 0)})
	<-done
	if err != nil {
		t.Errorf("%v", err)
	}
	done = expect(t, conn, message(71, 5, 9), message(3, []byte("abc")))
	_, err = c.File(context.Background(), FileRequest{Call: FileRead, Fields: []Field{Int(5), Int(9)}, Into: failing{}})
	<-done
	if Errno(err) != syscall.ENOSPC || errors.Is(err, ErrLost) {
		t.Errorf("%v", err)
	}
	alive(t, c, conn)
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestFileBodyThatFails loses the connection instead of sending other bytes than
// announced.
func TestFileBodyThatFails(t *testing.T) {
	c, _ := connect(t)
	_, err := c.File(context.Background(), FileRequest{Call: FileWrite, Fields: []Field{Int(5), Int(9)}, Body: strings.NewReader("abc"), Size: 9})
	if !errors.Is(err, ErrLost) || Errno(err) != syscall.ETIMEDOUT {
		t.Errorf("%v", err)
	}
}

// TestFileHostileShadow: the shadow announces more than it may.
func TestFileHostileShadow(t *testing.T) {
	c, conn := connect(t)
	done := expect(t, conn, message(71, 5, 9), message(1<<40))
	_, err := c.File(context.Background(), FileRequest{Call: FileRead, Fields: []Field{Int(5), Int(9)}})
	<-done
	if !errors.Is(err, ErrLost) {
		t.Errorf("%v", err)
	}
}

func TestFileNoSuchCall(t *testing.T) {
	c, _ := connect(t)
	for _, call := range []FileCall{-1, 0, FileWrite + 1} {
		if _, err := c.File(context.Background(), FileRequest{Call: call}); err == nil || errors.Is(err, ErrLost) {
			t.Errorf("%v: %v", call, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.File(ctx, FileRequest{Call: FileClose, Fields: []Field{Int(1)}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
