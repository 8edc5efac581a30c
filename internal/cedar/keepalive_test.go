package cedar

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestKeepAlive(t *testing.T) {
	a, _ := connPair(t)
	option := func(name int) int {
		t.Helper()
		raw, err := a.(*net.TCPConn).SyscallConn()
		must(t, err)
		var n int
		var optErr error
		must(t, raw.Control(func(fd uintptr) { n, optErr = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name) }))
		must(t, optErr)
		return n
	}
	prepare(a)
	if n := option(unix.TCP_KEEPIDLE); n != 360 {
		t.Errorf("probed after %d s", n)
	}
	if n := option(unix.TCP_USER_TIMEOUT); n != 385000 {
		t.Errorf("given up after %d ms", n)
	}
	must(t, KeepAlive(a, time.Minute))
	must(t, KeepAlive(a, -1))
	must(t, KeepAlive(a, 0))
	if n := option(unix.TCP_KEEPIDLE); n != 60 {
		t.Errorf("probed after %d s", n)
	}
	p, q := net.Pipe()
	defer p.Close()
	defer q.Close()
	must(t, KeepAlive(p, time.Minute))
}

// TestSlowReader sends to a peer that takes little at a time: every bit of
// progress buys another timeout, standstill does not.
func TestSlowReader(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	s := NewStream(a)
	s.SetTimeout(80 * time.Millisecond)
	const size = 200
	go func() {
		for range 4 {
			<-time.After(50 * time.Millisecond)
			_, _ = b.Read(make([]byte, size/4))
		}
	}()
	s.PutBytes(make([]byte, size))
	if err := s.EndMessage(); !errors.Is(err, os.ErrDeadlineExceeded) {
		// The header's five bytes are left over, and nobody takes them.
		t.Errorf("got %v", err)
	}
	s.PutInt(1)
	if err := s.EndMessage(); err == nil || err != s.Err() {
		t.Errorf("the error does not stick: %v", err)
	}
}
