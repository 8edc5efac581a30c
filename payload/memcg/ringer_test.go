package memcg

import (
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRinger: the kernel's reports ring, also several one after the other, and a watch looks at
// once. A socket stands for memory.events: urgent data are a priority event like the kernel's.
func TestRinger(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	there, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	here, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	open := func(c net.Conn) *os.File {
		f, err := c.(*net.TCPConn).File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	urge := int(open(there).Fd())
	files := &Files{version: 2, byName: map[string]*os.File{events2: open(here)}}
	r := newRinger(files)
	if r == nil {
		t.Fatal("the kernel cannot ring")
	}
	select {
	case <-r.bell:
		t.Error("it rings for nothing")
	default:
	}
	for range 3 {
		if err := unix.Sendto(urge, []byte("!"), unix.MSG_OOB, nil); err != nil {
			t.Fatal(err)
		}
		select {
		case <-r.bell:
		case <-time.After(20 * time.Second):
			t.Fatal("it does not ring")
		}
	}
	w := &Watch{bell: r.bell, stopping: make(chan struct{})}
	r.bell <- struct{}{}
	if stopped, rung := w.await(time.Hour, true); stopped || !rung {
		t.Errorf("stopped %t, rung %t", stopped, rung)
	}
	r.bell <- struct{}{}
	if stopped, rung := w.await(0, false); stopped || rung {
		t.Errorf("at rest: stopped %t, rung %t", stopped, rung)
	}
	close(w.stopping)
	if stopped, _ := w.await(time.Hour, false); !stopped {
		t.Error("it is not stopped")
	}
	r.end()
	(*ringer)(nil).end()
}
