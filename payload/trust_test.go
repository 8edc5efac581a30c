package payload

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestDialTrustsNoOther: Dial accepts only a listener of root or of this user, whatever it
// sends.
func TestDialTrustsNoOther(t *testing.T) {
	own := uint32(os.Geteuid())
	for uid, trusted := range map[uint32]bool{0: true, own: true, own + 1: false, 1_990_000_000: false} {
		dir := t.TempDir()
		fakeWrapper(t, dir, say(`{"hello":{"protocol":2,"nonce":"new"}}`+"\n"))
		c, err := Dial(soon(t, patience), Options{Dir: dir, Nonce: "new",
			peer: func(*net.UnixConn) (*unix.Ucred, error) { return &unix.Ucred{Pid: 7, Uid: uid}, nil }})
		if trusted != (err == nil) || !trusted && !errors.Is(err, errPeer) {
			t.Errorf("user %d: %v", uid, err)
		}
		if err == nil {
			c.Close()
		}
	}
	dir := t.TempDir()
	fakeWrapper(t, dir, say(`{"hello":{"protocol":2}}`+"\n"))
	c, err := Dial(soon(t, patience), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.peerPID != os.Getpid() {
		t.Errorf("the peer is process %d, want this one, %d", c.peerPID, os.Getpid())
	}
}

// answering is a wrapper that sends what answer returns for each request.
func answering(answer func(Request) []Message) func(net.Conn) {
	return func(c net.Conn) {
		lines := NewLineReader(c, MaxLine)
		for {
			line, err := lines.Next()
			if err != nil {
				return
			}
			r, err := DecodeRequest(line)
			if err != nil {
				return
			}
			for _, m := range answer(r) {
				text, _ := EncodeLine(m)
				if _, err := c.Write(text); err != nil {
					return
				}
			}
		}
	}
}

// TestSweepIsNotForWhatComesLater: a sweep may miss what was started during it.
func TestSweepIsNotForWhatComesLater(t *testing.T) {
	sweeps := make(chan int64, 1)
	c := dialFake(t, answering(func(r Request) []Message {
		started := Message{ID: r.ID, Started: &Started{Activation: "a"}}
		switch r.Op {
		case OpSweep:
			sweeps <- r.ID
			return nil
		case OpStart:
			select {
			case id := <-sweeps:
				return []Message{started, {ID: id, Done: true}}
			default:
				return []Message{started}
			}
		}
		return []Message{{ID: r.ID, Done: true}}
	}))
	if !c.Empty() {
		t.Error("not empty before anything was started")
	}
	start := func() {
		t.Helper()
		if _, err := c.Start(soon(t, patience), fullSpec); err != nil {
			t.Fatal(err)
		}
	}
	start()
	if c.Empty() {
		t.Error("empty although something was started")
	}
	swept := make(chan error, 1)
	go func() { swept <- c.Sweep(soon(t, patience)) }()
	// The wrapper answers the sweep after the next start.
	for len(sweeps) == 0 {
		if err := c.Signal(soon(t, patience), syscall.SIGCONT, true); err != nil {
			t.Fatal(err)
		}
	}
	start()
	if err := <-swept; err != nil {
		t.Fatal(err)
	}
	if c.Empty() {
		t.Error("empty although something was started during the sweep")
	}
}

// TestExitOfAnother: the end of another activation does not end the wait for this one.
func TestExitOfAnother(t *testing.T) {
	c := dialFake(t, answering(func(r Request) []Message {
		return []Message{
			{ID: r.ID, Started: &Started{Activation: r.Spec.Activation}},
			{Exit: &Exit{Activation: "another", WaitStatus: 1}},
			{Exit: &Exit{Activation: r.Spec.Activation, WaitStatus: 2}},
		}
	}))
	if _, err := c.Start(soon(t, patience), fullSpec); err != nil {
		t.Fatal(err)
	}
	if exit, err := c.Wait(soon(t, patience)); err != nil || exit.Activation != fullSpec.Activation || exit.WaitStatus != 2 {
		t.Errorf("%+v, %v", exit, err)
	}
}

// TestFailureHangsUp: a failed connection is closed, so that the wrapper notices and kills
// the payload.
func TestFailureHangsUp(t *testing.T) {
	heard := make(chan error, 1)
	c := dialFake(t, func(conn net.Conn) {
		if _, err := conn.Write([]byte("rubbish\n")); err != nil {
			heard <- err
			return
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		_, err := conn.Read(make([]byte, 1))
		heard <- err
	})
	<-c.Lost()
	if err := <-heard; !errors.Is(err, io.EOF) {
		t.Errorf("the wrapper reads %v", err)
	}
}

// TestLateFiles: files that arrive after the end are closed at once, so that the reader of
// a pipe sees its end.
func TestLateFiles(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		conn, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ends[i] = conn.(*net.UnixConn)
	}
	files := NewFileReader(ends[0], 5)
	for _, when := range []string{"before the end", "after the end"} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		err = SendFiles(ends[1], []byte("x"), []*os.File{write})
		write.Close()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = files.Read(make([]byte, 1))
		if when == "before the end" {
			files.Close()
		}
		if err := read.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := read.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("a file that came %s is still open: %v", when, err)
		}
	}
}

// TestPeerOfAnotherUser: who waits for a wrapper of one user believes nobody else, root included.
func TestPeerOfAnotherUser(t *testing.T) {
	for uid, good := range map[uint32]bool{1234: true, 1235: false, 0: false} {
		pid, err := checkPeer(nil, Options{User: 1234, peer: func(*net.UnixConn) (*unix.Ucred, error) { return &unix.Ucred{Pid: 7, Uid: uid}, nil }})
		if (err == nil) != good || good && pid != 7 {
			t.Errorf("user %d: process %d, %v", uid, pid, err)
		}
	}
}
