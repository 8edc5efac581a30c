package cedar

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener accepts the connections it is given.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// TestHandshakeDeadline and TestOldestHandshakeGives run in time that stands
// still until everybody waits.
func TestHandshakeDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- (&Server{}).Serve(ctx, l) }()
		a, b := net.Pipe()
		l.conns <- b
		start := time.Now()
		// A byte now and then does not buy time.
		go func() {
			for range 4 {
				time.Sleep(50 * time.Second)
				_, _ = a.Write([]byte{1})
			}
		}()
		_, err := io.ReadAll(a)
		must(t, err)
		if took := time.Since(start); took != handshakeDeadline {
			t.Errorf("closed after %v", took)
		}
		cancel()
		must(t, <-done)
		time.Sleep(time.Hour)
	})
}

func TestOldestHandshakeGives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- (&Server{MaxHandshakes: 2}).Serve(ctx, l) }()
		var ends []net.Conn
		for range 3 {
			a, b := net.Pipe()
			l.conns <- b
			synctest.Wait()
			ends = append(ends, a)
		}
		start := time.Now()
		if _, err := ends[0].Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the oldest: %v", err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the oldest was closed after %v", took)
		}
		s := NewStream(ends[1])
		s.PutInt(DCQueryInstance)
		go func() { _ = s.EndMessage() }()
		if _, err := s.GetBytes(16); err != nil {
			t.Errorf("the others: %v", err)
		}
		cancel()
		must(t, <-done)
		for _, e := range ends {
			e.Close()
		}
	})
}

// TestOldestStrangerGives: peers without a session count until their command has been served, so that they cannot take all
// that the server has by sending half of one.
func TestOldestStrangerGives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		ctx, cancel := context.WithCancel(t.Context())
		server := &Server{MaxHandshakes: 2}
		server.Handle(testRaw, Allow, func(_ context.Context, c *Call) error {
			if err := c.Stream.EndOfMessage(); err != nil {
				return err
			}
			_, err := c.Stream.GetInt()
			return err
		})
		done := make(chan error)
		go func() { done <- server.Serve(ctx, l) }()
		var ends []net.Conn
		for range 3 {
			a, b := net.Pipe()
			l.conns <- b
			s := NewStream(a)
			s.PutInt(testRaw)
			go func() { _ = s.EndMessage() }()
			synctest.Wait()
			ends = append(ends, a)
		}
		start := time.Now()
		if _, err := ends[0].Read(make([]byte, 1)); err != io.EOF || time.Since(start) != 0 {
			t.Errorf("the oldest: %v after %v", err, time.Since(start))
		}
		cancel()
		must(t, <-done)
		for _, e := range ends {
			e.Close()
		}
	})
}

func TestServeEndsHandlers(t *testing.T) {
	l := newPipeListener()
	s := &Server{}
	entered := make(chan struct{})
	result := make(chan error, 1)
	s.Handle(testRaw, Allow, func(_ context.Context, c *Call) error {
		close(entered)
		must(t, c.Stream.EndOfMessage())
		_, err := c.Stream.GetInt()
		result <- err
		return err
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	a, b := net.Pipe()
	defer a.Close()
	l.conns <- b
	st := NewStream(a)
	st.PutInt(testRaw)
	must(t, st.EndMessage())
	<-entered
	cancel()
	must(t, <-done)
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler saw %v", err)
	}
}
