package shadow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// soon fails the test if something does not happen.
func soon(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s does not happen", what)
	}
}

func TestLost(t *testing.T) {
	ctx := context.Background()
	for name, tt := range map[string]struct {
		shadow func(conn net.Conn)
		called bool // the loss shows in a call
	}{
		"hangs up while idle":      {func(conn net.Conn) { conn.Close() }, false},
		"resets while idle":        {func(conn net.Conn) { conn.(*net.TCPConn).SetLinger(0); conn.Close() }, false},
		"speaks first":             {func(conn net.Conn) { conn.Write([]byte{1}) }, false},
		"hangs up during the call": {func(conn net.Conn) { io.ReadFull(conn, make([]byte, 13)); conn.Close() }, true},
		"answers half":             {func(conn net.Conn) { io.ReadFull(conn, make([]byte, 13)); conn.Write(message(0)[:7]); conn.Close() }, true},
		"answers too much":         {func(conn net.Conn) { io.ReadFull(conn, make([]byte, 13)); conn.Write(message(0, 0, 0)) }, true},
		"answers nonsense":         {func(conn net.Conn) { io.ReadFull(conn, make([]byte, 13)); conn.Write([]byte("HTTP/1.1 400\r\n\r\n")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, conn := connect(t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				tt.shadow(conn)
			}()
			if tt.called {
				if err := c.BeginExecution(ctx); !errors.Is(err, ErrLost) {
					t.Errorf("error %v", err)
				}
			}
			soon(t, "Lost", c.Lost())
			<-done
			if err := c.RegisterJobInfo(ctx, classads.NewAd()); !errors.Is(err, ErrLost) {
				t.Errorf("the next call: %v", err)
			}
			var refusal *CallError
			if err := c.BeginExecution(ctx); errors.As(err, &refusal) {
				t.Errorf("%v counts as an answer", err)
			}
		})
	}
}

func TestExpectedEnd(t *testing.T) {
	ctx := context.Background()
	for name, call := range map[string]struct {
		do     func(*Client) error
		answer []byte
	}{
		"after job_exit":           {func(c *Client) error { return c.JobExit(ctx, 0, JobExited, nil) }, message(0)},
		"after a critical failure": {func(c *Client) error { return c.ReportError(ctx, RemoteError{Critical: true}) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, conn := connect(t)
			peer := cedar.NewStream(conn)
			done := make(chan struct{})
			go func() {
				defer close(done)
				if _, err := peer.ReadMessage(make([]byte, 1000)); err != nil {
					t.Error(err)
				}
				conn.Write(call.answer)
			}()
			if err := call.do(c); err != nil {
				t.Error(err)
			}
			<-done
			conn.Close()
			soon(t, "the end of the watch", c.current().watch.done)
			select {
			case <-c.Lost():
				t.Error("the shadow's end counts as a loss")
			default:
			}
		})
	}
}

// TestCancel: a caller leaves before the answer; the connection survives.
func TestCancel(t *testing.T) {
	c, conn := connect(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("no more time")
	go func() {
		io.ReadFull(conn, make([]byte, 13))
		cancel(reason)
	}()
	if err := c.BeginExecution(ctx); !errors.Is(err, reason) || errors.Is(err, ErrLost) {
		t.Errorf("error %v", err)
	}
	if err := c.BeginExecution(ctx); !errors.Is(err, reason) || errors.Is(err, ErrLost) {
		t.Errorf("a call when the time is over: %v", err)
	}
	next := make(chan error, 1)
	go func() { next <- c.RegisterJobInfo(context.Background(), classads.NewAd()) }()
	conn.Write(message(0)) // the answer to the first
	done := expect(t, conn, message(-81, ad{}), message(0))
	if err := <-next; err != nil {
		t.Errorf("the next call: %v", err)
	}
	<-done
}

// TestCloseDuringCall: Close during a call does not count as a loss.
func TestCloseDuringCall(t *testing.T) {
	c, conn := connect(t)
	called := make(chan error, 1)
	go func() { called <- c.BeginExecution(context.Background()) }()
	io.ReadFull(conn, make([]byte, 13))
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-called; !errors.Is(err, ErrLost) {
		t.Errorf("error %v", err)
	}
	select {
	case <-c.Lost():
		t.Error("Lost is closed")
	default:
	}
}

func TestTimeout(t *testing.T) {
	c, _ := connect(t)
	c.SetTimeout(10 * time.Millisecond)
	if err := c.BeginExecution(context.Background()); !errors.Is(err, ErrLost) {
		t.Errorf("error %v", err)
	}
}

// TestManyCallers: calls of several goroutines take turns.
func TestManyCallers(t *testing.T) {
	c, conn := connect(t)
	peer := cedar.NewStream(conn)
	const callers, each = 8, 20
	go func() {
		for range callers * each {
			n, err := peer.GetInt()
			name, err2 := peer.GetString()
			if err != nil || err2 != nil || peer.EndOfMessage() != nil || n != CallGetJobAttr {
				t.Errorf("%d %q %v %v", n, name, err, err2)
				return
			}
			peer.PutInt(0)
			peer.PutString(name + "!")
			if peer.EndMessage() != nil {
				return
			}
		}
	}()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range each {
				name := fmt.Sprintf("a%d_%d", i, j)
				if got, err := c.GetJobAttr(context.Background(), name); err != nil || got != name+"!" {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
		})
	}
	wg.Wait()
}

// files is a shadow with one file.
func files(t *testing.T, conn net.Conn) {
	s := cedar.NewStream(conn)
	var content []byte
	at := 0
	for {
		n, err := s.GetInt()
		if err != nil {
			return
		}
		arg := func() int { v, _ := s.GetInt(); return int(v) }
		result, extra := 0, []byte(nil)
		switch n {
		case numOpen:
			flags, mode := arg(), arg()
			name, _ := s.GetString()
			if name == "no" {
				result = -2
			} else if flags != 0x301 || mode != 0o666 {
				t.Errorf("flags %#x mode %#o", flags, mode)
			}
		case numLseek:
			arg()
			if offset := arg(); arg() == 2 {
				at = len(content) + offset
			} else {
				at = offset
			}
			result = at
		case numWrite:
			arg()
			size := arg()
			b, _ := s.GetBytes(size)
			content = append(content[:at], b...)
			at += size
			result = size
			if string(b) == "short" {
				result = 2
			}
		case numRead:
			arg()
			extra = content[at:min(at+arg(), len(content))]
			result = len(extra)
		default: // fsync, close
			arg()
		}
		if err := s.EndOfMessage(); err != nil {
			t.Error(err)
			return
		}
		s.PutInt(int64(result))
		if result < 0 {
			s.PutErrno(syscall.Errno(-result))
		}
		s.PutBytes(extra)
		if s.EndMessage() != nil {
			return
		}
	}
}

func TestRemoteFile(t *testing.T) {
	c, conn := connect(t)
	go files(t, conn)
	ctx := context.Background()
	if _, err := c.OpenFile(ctx, "no", 0, 0); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a file that is not there: %v", err)
	}
	f, err := c.OpenFile(ctx, "out", syscall.O_CREAT|syscall.O_TRUNC|syscall.O_WRONLY|syscall.O_CLOEXEC, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", maxFileIO) + "end"
	if n, err := f.WriteAt(ctx, []byte(text), 0); n != len(text) || err != nil {
		t.Errorf("WriteAt: %d, %v", n, err)
	}
	if n, err := f.WriteAt(ctx, nil, 0); n != 0 || err != nil {
		t.Errorf("WriteAt of nothing: %d, %v", n, err)
	}
	if n, err := f.Size(ctx); n != int64(len(text)) || err != nil {
		t.Errorf("Size: %d, %v", n, err)
	}
	b := make([]byte, 10)
	if n, err := f.ReadAt(ctx, b, maxFileIO); string(b[:n]) != "end" || err != nil {
		t.Errorf("ReadAt: %q, %v", b[:n], err)
	}
	if n, err := f.WriteAt(ctx, []byte("short"), 0); n != 2 || err == nil {
		t.Errorf("a short write: %d, %v", n, err)
	}
	if err := errors.Join(f.Sync(ctx), f.Close(ctx)); err != nil {
		t.Error(err)
	}
}
