package cedar

import (
	"errors"
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
	due  int             // bytes that are bound to arrive, at least
	size int             // as set; 0 is the kernel's default of one byte
	raw  syscall.RawConn // nil: not tried yet, or not possible
	off  bool
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
	if w.off || n == w.size || n > w.size && n < wakeSize {
		return
	}
	if w.raw == nil {
		sc, ok := s.conn.(syscall.Conn)
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
	err := w.raw.Control(func(fd uintptr) {
		// tcp(7): since Linux 4.18 readiness is reported only at this mark;
		// the receive buffer grows to hold it (net/ipv4/tcp.c:
		// tcp_set_rcvlowat).
		if e := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, max(n, 1)); e != nil {
			w.off = true
		}
	})
	if err != nil {
		w.off = true
		return
	}
	w.size = n
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
