package chirp

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"podstarter/condor/shadow"
)

// pipes is a listener without a network.
type pipes struct {
	dialled chan net.Conn
	closed  context.Context
	close   context.CancelFunc
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialled:
		return conn, nil
	case <-p.closed.Done():
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// slowShadow answers no call on a file before hold is closed, and counts the
// unanswered ones.
type slowShadow struct {
	Shadow
	under atomic.Int32
	hold  chan struct{}
}

func (s *slowShadow) File(context.Context, shadow.FileRequest) (shadow.FileAnswer, error) {
	s.under.Add(1)
	defer s.under.Add(-1)
	<-s.hold
	return shadow.FileAnswer{}, nil
}

// TestOneRequestAtATime: the shadow does one thing at a time, so the requests of
// all clients are carried out one after the other.
func TestOneRequestAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := &slowShadow{hold: make(chan struct{})}
		l := &pipes{dialled: make(chan net.Conn)}
		l.closed, l.close = context.WithCancel(t.Context())
		o := all(sh)
		o.Cookie = cookie
		s := Serve(l, o)
		var answers []*bufio.Reader
		for range 3 {
			here, there := net.Pipe()
			defer here.Close()
			l.dialled <- there
			in := bufio.NewReader(here)
			answers = append(answers, in)
			if _, err := io.WriteString(here, "cookie "+cookie+"\n"); err != nil {
				t.Fatal(err)
			}
			if line, err := in.ReadString('\n'); err != nil || line != "0\n" {
				t.Fatalf("%q, %v", line, err)
			}
			if _, err := io.WriteString(here, "unlink f\n"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // every goroutine is blocked
		if n := sh.under.Load(); n != 1 {
			t.Errorf("the shadow is asked %d things at once", n)
		}
		close(sh.hold)
		for _, in := range answers {
			if line, err := in.ReadString('\n'); err != nil || line != "0\n" {
				t.Errorf("%q, %v", line, err)
			}
		}
		s.Close()
	})
}
