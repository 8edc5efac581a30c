package cedar

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// wakeSize is how many bytes the kernel gathers before it wakes a reader
	// that knows that they will come. HTCondor writes packets of 4 KiB one by
	// one; to be woken for each costs three times what taking the data does.
	wakeSize = 128 << 10
	// wakeLeast is the amount below which it is not worth the system call.
	wakeLeast = 32 << 10
)

// wakeup is the SO_RCVLOWAT of the connection.
type wakeup struct {
	due     int             // bytes that are bound to arrive, at least
	size    int             // as set; 0 is the kernel's default of one byte
	raw     syscall.RawConn // nil: not tried yet, or not possible
	off     bool
	patient bool
	sized   bool // that the receive buffer should be small was looked at
}

// expect tells that at least n bytes of payload are still to be taken from
// the stream, so that the kernel need not wake the reader for few of them.
func (s *Stream) expect(n int64) {
	in := &s.recv
	have := in.w - in.r + len(in.sealed) + len(in.plain)
	in.wake.due = max(0, int(min(n, 2*bulkBuffer))-have)
}

// setWakeup sets the mark for the next read. It must never be above what is
// due: the reader would wait for what nobody sends.
func (s *Stream) setWakeup() {
	w := &s.recv.wake
	n := min(w.due, wakeSize)
	if n < wakeLeast {
		n = 0
	}
	if n > w.size && n < wakeSize {
		return
	}
	s.setMark(n)
}

// setMark sets SO_RCVLOWAT, 0 for the kernel's default.
func (s *Stream) setMark(n int) {
	w := &s.recv.wake
	if w.off || n == w.size {
		return
	}
	w.control(s.conn, func(fd int) {
		// tcp(7): since Linux 4.18 readiness is reported only at this mark;
		// the receive buffer grows to hold it (net/ipv4/tcp.c:
		// tcp_set_rcvlowat).
		if e := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, max(n, 1)); e != nil {
			w.off = true
		}
	})
	if !w.off {
		w.size = n
	}
}

// control runs a function with the descriptor of the connection. If that has none, the
// function does not run, and off is set.
func (w *wakeup) control(conn net.Conn, do func(fd int)) {
	if w.raw == nil {
		sc, ok := conn.(syscall.Conn)
		if !ok {
			w.off = true
			return
		}
		raw, err := sc.SyscallConn()
		if err != nil {
			w.off = true
			return
		}
		w.raw = raw
	}
	if err := w.raw.Control(func(fd uintptr) { do(int(fd)) }); err != nil {
		w.off = true
	}
}

// late takes what has arrived when a read ran into its deadline while the
// kernel was still gathering: a slow peer is not a silent one.
func (s *Stream) late(err error) int {
	in := &s.recv
	if in.wake.size == 0 || !errors.Is(err, os.ErrDeadlineExceeded) || s.deadline.struck() {
		return 0
	}
	in.wake.due = 0
	s.setWakeup()
	s.deadline.rearm()
	_ = s.conn.SetReadDeadline(time.Now().Add(time.Second))
	n, _ := s.conn.Read(in.buf[in.w:])
	return n
}

// moment is how long a patient reader waits for more than has arrived.
const moment = time.Millisecond

// SetPatient chooses whether reads may wait a moment, a millisecond or two, until
// more has arrived than the little that is there. It is for peers that go on
// sending without waiting for an answer: HTCondor sends a small file as five
// messages, each by itself, and to be woken for each of them costs either side more
// than what is done with them.
func (s *Stream) SetPatient(on bool) { s.recv.wake.patient = on }

// readPatiently reads once from the connection; 0 bytes if nothing came in a
// moment, and it is to be waited for in the usual way.
func (s *Stream) readPatiently(b []byte) (int, error) {
	in := &s.recv
	s.setMark(wakeSize)
	if in.wake.off {
		return 0, nil
	}
	if err := s.deadline.armMoment(s.conn, moment); err != nil {
		return 0, err
	}
	n, err := s.conn.Read(b)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || s.deadline.struck() {
		return n, err
	}
	// What there is, be it less than the mark.
	if err := s.deadline.armMoment(s.conn, 0); err != nil {
		return 0, err
	}
	e := in.wake.raw.Read(func(fd uintptr) bool {
		n, err = unix.Read(int(fd), b)
		return true
	})
	switch {
	case e != nil:
		return 0, e
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return 0, nil
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
