package shadow

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/rescue"
)

// A shadow never speaks first. Bytes, or the end of the connection, that arrive
// while no call is under way mean that the connection is lost; after the
// kernel's keep-alive probes a dead peer looks the same
// (condor_starter.V6.1/jic_shadow.cpp:JICShadow::syscall_sock_handler).

// watch waits for that on a duplicate of the socket, which has its own
// deadlines, and reads no bytes from it.
type watch struct {
	file    *os.File
	stopped sync.Once
	done    chan struct{} // closed when the goroutine has ended
}

// newWatch prepares to watch a connection; call start afterwards.
func newWatch(c *Client, conn net.Conn) *watch {
	w := &watch{done: make(chan struct{})}
	duplicate, ok := conn.(interface{ File() (*os.File, error) })
	if !ok {
		return w // a connection without a socket, only in tests
	}
	var err error
	if w.file, err = duplicate.File(); err != nil {
		c.log.Warn("Cannot watch the connection to the shadow for its end; only a failing call will show it", "error", err)
		w.file = nil
	}
	return w
}

func (w *watch) start(c *Client, l *link) {
	if w.file == nil {
		close(w.done)
		return
	}
	rescue.Go(func() {
		defer close(w.done)
		defer w.file.Close()
		w.run(c, l)
	})
}

// stop ends the watch and waits until it has ended. The owner of the turn must
// not call it.
func (w *watch) stop() {
	w.leave()
	<-w.done
}

// leave ends the watch soon, without waiting. Until then its duplicate keeps
// the connection open.
func (w *watch) leave() {
	w.stopped.Do(func() {
		if w.file != nil {
			_ = w.file.SetReadDeadline(time.Unix(1, 0))
		}
	})
}

func (w *watch) run(c *Client, l *link) {
	raw, err := w.file.SyscallConn()
	if err != nil {
		return
	}
	var found error
	// The function is called when the socket becomes readable; while it
	// returns false, Read goes on waiting.
	_ = raw.Read(func(fd uintptr) bool {
		if peek(int(fd)) == nil {
			return false
		}
		select {
		case <-c.turn:
		case <-l.lost:
			return true
		}
		defer func() { c.turn <- struct{}{} }()
		// It may have been the answer to a call, which has read it by now.
		if found = peek(int(fd)); found == nil {
			return false
		}
		if l.broken == nil && !l.expected.Load() {
			c.log.Warn("The connection to the shadow is lost", "cause", found)
			_ = l.breakUp(fmt.Errorf("while idle: %w", found))
		}
		return true
	})
}

var errSpokeFirst = errors.New("the shadow sent something without being asked")

// peek returns what waits on a socket: nil for nothing.
func peek(fd int) error {
	var b [1]byte
	for {
		n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return err
		case n == 0:
			return io.EOF
		default:
			return errSpokeFirst
		}
	}
}
