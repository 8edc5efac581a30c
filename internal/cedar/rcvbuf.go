package cedar

import "golang.org/x/sys/unix"

const (
	// nearBuffer is the SO_RCVBUF for large files of a near peer. HTCondor sends packets of
	// 4 KiB. While the receiver's window has room, each leaves in a segment of its own, through
	// the whole network stack. If the window is full, the kernel joins them to segments of
	// 64 KiB, which costs the sender less CPU time. The kernel doubles the value. It is below
	// the usual limit (net.core.rmem_max).
	nearBuffer = 192 << 10
	// nearTime is the round-trip time of a near peer in microseconds. With it, the window still
	// allows about one GB a second; a farther peer needs the window that the kernel chooses.
	nearTime = 200
	// nearFile is the size of a file for which it is worth the system calls.
	nearFile = 1 << 20
)

// limitWindow makes the receive buffer small if the peer is near, once for a connection.
func (s *Stream) limitWindow() {
	w := &s.recv.wake
	if w.sized || w.off {
		return
	}
	w.sized = true
	w.control(s.conn, func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil && near(info) {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, nearBuffer)
		}
	})
}

// near reports whether the peer of a connection is near. Without any measurement, the kernel's
// time is the greatest number.
func near(info *unix.TCPInfo) bool { return info.Min_rtt <= nearTime }
