package shadow

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// comeBack is a new connection of a shadow that answers Resume's call. end
// waits for that and returns the shadow's end.
func comeBack(t *testing.T) (mine *cedar.Stream, end func() *cedar.Stream) {
	t.Helper()
	mine, theirs := encrypted(t)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		n, _ := theirs.GetInt()
		for range 2 {
			_, _ = theirs.GetString()
		}
		if err := theirs.EndOfMessage(); err != nil || n != CallGetSecSessionInfo {
			t.Errorf("first call %d, %v", n, err)
		}
		theirs.PutInt(1)
		for _, id := range []string{"claim", "filetrans.claim"} {
			theirs.PutString(id)
			theirs.PutString("")
			theirs.PutSecret(strings.Repeat("5e", 32))
		}
		if err := theirs.EndMessage(); err != nil {
			t.Error(err)
		}
	}()
	return mine, func() *cedar.Stream { <-answered; return theirs }
}

// serveOne answers one begin_execution.
func serveOne(t *testing.T, s *cedar.Stream) {
	t.Helper()
	if n, err := s.GetInt(); err != nil || n != CallBeginExecution || s.EndOfMessage() != nil {
		t.Errorf("call %d, %v", n, err)
		return
	}
	s.PutInt(0)
	if err := s.EndMessage(); err != nil {
		t.Error(err)
	}
}

func unsettled(SecSessionInfo) error { return nil }

func TestResume(t *testing.T) {
	ctx := context.Background()
	for name, tt := range map[string]struct {
		before func(t *testing.T, c *Client, conn net.Conn)
	}{
		"after a loss": {func(t *testing.T, c *Client, conn net.Conn) {
			conn.Close()
			soon(t, "Lost", c.Lost())
		}},
		"while it is connected": {func(*testing.T, *Client, net.Conn) {}},
		"while a call waits for its answer": {func(t *testing.T, c *Client, conn net.Conn) {
			called := make(chan error, 1)
			go func() { called <- c.RegisterJobInfo(ctx, classads.NewAd()) }()
			if _, err := io.ReadFull(conn, make([]byte, 13)); err != nil {
				t.Error(err)
			}
			t.Cleanup(func() {
				if err := <-called; !errors.Is(err, ErrLost) {
					t.Errorf("the call on the old connection: %v", err)
				}
			})
		}},
		"a second time": {func(t *testing.T, c *Client, _ net.Conn) {
			mine, end := comeBack(t)
			if err := c.Resume(ctx, mine, unsettled); err != nil {
				t.Error(err)
			}
			end().Close()
			soon(t, "Lost", c.Lost())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, conn := connect(t)
			first := c.Lost()
			tt.before(t, c, conn)
			mine, end := comeBack(t)
			settled := false
			resumed := time.Now()
			err := c.Resume(ctx, mine, func(info SecSessionInfo) error {
				settled = info.FileTransfer.ID == "filetrans.claim"
				return nil
			})
			if err != nil || !settled {
				t.Fatalf("Resume: %v, settled %v", err, settled)
			}
			if last := c.LastCall(); last.Before(resumed) {
				t.Errorf("the job's lease counts from %v before the shadow was back", resumed.Sub(last))
			}
			soon(t, "the end of the first connection", first)
			if err := c.Await(ctx); err != nil {
				t.Errorf("Await: %v", err)
			}
			theirs := end()
			done := make(chan struct{})
			go func() { defer close(done); serveOne(t, theirs) }()
			if err := c.BeginExecution(ctx); err != nil {
				t.Errorf("a call on the new connection: %v", err)
			}
			<-done
			select {
			case <-c.Lost():
				t.Error("the new connection counts as lost")
			default:
			}
			theirs.Close()
			soon(t, "the loss of the new connection", c.Lost())
		})
	}
}

// TestResumeFails: after a failed attempt the client waits for the next
// connection.
func TestResumeFails(t *testing.T) {
	ctx := context.Background()
	for name, tt := range map[string]struct {
		streams func(t *testing.T) (mine, theirs *cedar.Stream)
		settle  func(SecSessionInfo) error
	}{
		"hangs up": {func(t *testing.T) (_, _ *cedar.Stream) { a, b := encrypted(t); b.Close(); return a, b }, unsettled},
		"not encrypted": {func(t *testing.T) (_, _ *cedar.Stream) {
			a, b := pair(t)
			return cedar.NewStream(a), cedar.NewStream(b)
		}, unsettled},
		"not settled": {func(t *testing.T) (_, _ *cedar.Stream) { a, _ := comeBack(t); return a, nil }, func(SecSessionInfo) error { return errors.New("no such session") }},
		"answers nonsense": {func(t *testing.T) (_, _ *cedar.Stream) {
			a, b := encrypted(t)
			go b.Conn().Write([]byte("HTTP/1.1 400\r\n\r\n"))
			return a, b
		}, unsettled},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t)
			mine, _ := tt.streams(t)
			if err := c.Resume(ctx, mine, tt.settle); err == nil {
				t.Fatal("no error")
			}
			soon(t, "Lost", c.Lost())
			waiting := make(chan error, 1)
			go func() { waiting <- c.Await(ctx) }()
			mine, _ = comeBack(t)
			if err := c.Resume(ctx, mine, unsettled); err != nil {
				t.Error(err)
			}
			if err := <-waiting; err != nil {
				t.Errorf("Await: %v", err)
			}
		})
	}
}

// TestResumeRefusedSessions: Resume accepts a shadow without sessions.
func TestResumeRefusedSessions(t *testing.T) {
	c, _ := connect(t)
	mine, theirs := encrypted(t)
	go func() {
		_, _ = theirs.ReadMessage(make([]byte, 100))
		theirs.PutInt(-1)
		theirs.PutInt(1)
		_ = theirs.EndMessage()
	}()
	err := c.Resume(context.Background(), mine, func(info SecSessionInfo) error {
		if info.FileTransfer.Given() {
			t.Error("a session that nobody gave")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestResumeTooLate: after the job was given up or reported, or the client was
// closed, no shadow is accepted.
func TestResumeTooLate(t *testing.T) {
	ctx := context.Background()
	for name, end := range map[string]func(t *testing.T, c *Client, conn net.Conn){
		"lease over": func(t *testing.T, c *Client, conn net.Conn) {
			conn.Close()
			soon(t, "Lost", c.Lost())
			if !c.Abandon(errors.New("the lease is over")) {
				t.Error("not abandoned")
			}
		},
		"exit reported": func(t *testing.T, c *Client, conn net.Conn) {
			go func() {
				_, _ = cedar.NewStream(conn).ReadMessage(make([]byte, 1000))
				_, _ = conn.Write(message(0))
			}()
			if err := c.JobExit(ctx, 0, JobExited, nil); err != nil {
				t.Error(err)
			}
		},
		"closed": func(t *testing.T, c *Client, _ net.Conn) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			c, conn := connect(t)
			end(t, c, conn)
			mine, _ := encrypted(t)
			if err := c.Resume(ctx, mine, unsettled); err == nil {
				t.Error("a shadow was accepted")
			}
			if c.Over() == nil {
				t.Error("Over says that one would be")
			}
			if err := c.Await(ctx); !errors.Is(err, ErrLost) {
				t.Errorf("Await: %v", err)
			}
		})
	}
}

// TestAbandon: a client with a working connection is not given up.
func TestAbandon(t *testing.T) {
	c, conn := connect(t)
	if c.Abandon(errors.New("the lease is over")) || c.Over() != nil {
		t.Error("given up with a connection")
	}
	conn.Close()
	soon(t, "Lost", c.Lost())
	waiting := make(chan error, 1)
	go func() { waiting <- c.Await(context.Background()) }()
	if !c.Abandon(errors.New("the lease is over")) {
		t.Error("not given up")
	}
	if err := <-waiting; !errors.Is(err, ErrLost) {
		t.Errorf("Await: %v", err)
	}
}

func TestAwaitEnds(t *testing.T) {
	c, conn := connect(t)
	conn.Close()
	soon(t, "Lost", c.Lost())
	reason := errors.New("no more time")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	if err := c.Await(ctx); !errors.Is(err, reason) || errors.Is(err, ErrLost) {
		t.Errorf("Await: %v", err)
	}
}

// TestAwaitNext: a connection that is lost again at once has been there all the same.
func TestAwaitNext(t *testing.T) {
	c, conn := connect(t)
	first := c.Lost()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.AwaitNext(ctx, first); !errors.Is(err, context.Canceled) {
		t.Errorf("AwaitNext while there is none: %v", err)
	}
	conn.Close()
	soon(t, "Lost", first)
	mine, _ := comeBack(t)
	if err := c.Resume(t.Context(), mine, unsettled); err != nil {
		t.Fatal(err)
	}
	c.Disconnect(errors.New("lost again"))
	if err := c.AwaitNext(t.Context(), first); err != nil {
		t.Errorf("AwaitNext: %v", err)
	}
	if err := c.Await(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Await: %v", err)
	}
}

// TestDisconnect: the shadow sees the end of the connection at once.
func TestDisconnect(t *testing.T) {
	c, conn := connect(t)
	called := make(chan error, 1)
	go func() { called <- c.BeginExecution(context.Background()) }()
	if _, err := io.ReadFull(conn, make([]byte, 13)); err != nil {
		t.Error(err)
	}
	c.Disconnect(errors.New("a transfer failed"))
	if err := <-called; !errors.Is(err, ErrLost) {
		t.Errorf("the call under way: %v", err)
	}
	if !c.Broken() {
		t.Error("not broken")
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the shadow reads %d, %v", n, err)
	}
}

// TestLeaseCounts: the lease counts from the beginning of the answered call.
func TestLeaseCounts(t *testing.T) {
	c, conn := connect(t)
	asked := make(chan time.Time, 1)
	go func() {
		_, _ = io.ReadFull(conn, make([]byte, 13))
		asked <- time.Now()
		_, _ = conn.Write(message(0))
	}()
	if err := c.BeginExecution(context.Background()); err != nil {
		t.Fatal(err)
	}
	answered := c.LastCall()
	if answered.After(<-asked) {
		t.Error("the lease counts from a time after the shadow got the call")
	}
	if err := c.LogGeneric(context.Background(), "nobody answers this"); err != nil {
		t.Fatal(err)
	}
	if !c.LastCall().Equal(answered) {
		t.Error("a message without an answer renews the lease")
	}
}

// TestRemoteFileLeftBehind: a file's number is never used on another
// connection.
func TestRemoteFileLeftBehind(t *testing.T) {
	c, conn := connect(t)
	go files(t, conn)
	ctx := context.Background()
	f, err := c.OpenFile(ctx, "out", 0x241, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	mine, end := comeBack(t)
	if err := c.Resume(ctx, mine, unsettled); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(ctx, []byte("x"), 0); !errors.Is(err, ErrLost) {
		t.Errorf("WriteAt: %v", err)
	}
	if _, err := f.Size(ctx); !errors.Is(err, ErrLost) {
		t.Errorf("Size: %v", err)
	}
	if err := f.Close(ctx); !errors.Is(err, ErrLost) {
		t.Errorf("Close: %v", err)
	}
	theirs, done := end(), make(chan struct{})
	go func() { defer close(done); serveOne(t, theirs) }() // it would complain about anything else
	if err := c.BeginExecution(ctx); err != nil {
		t.Error(err)
	}
	<-done
}

// TestManyLosses has callers and shadows come and go at once: every call is
// answered or lost, and none hangs.
func TestManyLosses(t *testing.T) {
	c, conn := connect(t)
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer cancel()
	for range 4 {
		callers.Go(func() {
			for c.Await(ctx) == nil {
				if err := c.BeginExecution(context.Background()); err != nil && !errors.Is(err, ErrLost) {
					t.Error(err)
				}
			}
		})
	}
	conn.Close()
	for range 50 {
		mine, end := comeBack(t)
		if err := c.Resume(ctx, mine, unsettled); err != nil {
			t.Fatal(err)
		}
		theirs := end()
		serveOne(t, theirs)
		theirs.Close()
		soon(t, "Lost", c.Lost())
	}
}
