package harness

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Capture listens to the TCP connections of a network namespace's loopback device.
type Capture struct {
	socket     int
	stop, done chan struct{}
	streams    map[direction]*stream
	err        error
}

// direction is one of the two of a connection.
type direction struct{ from, to netip.AddrPort }

// stream is what is sent in one direction.
type stream struct {
	next   uint32 // sequence number of the byte that follows
	missed bool
	data   []byte
}

// captureBuffer is how many bytes of packets the kernel may keep until they are read.
const captureBuffer = 128 << 20

// NewCapture begins to listen in the network namespace of a process. It needs
// CAP_NET_RAW there (packet(7)).
func NewCapture(pid int) (*Capture, error) {
	c := &Capture{stop: make(chan struct{}), done: make(chan struct{}), streams: make(map[direction]*stream)}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread leaves its namespace
		var err error
		c.socket, err = listenIn(pid)
		failed <- err
	}()
	if err := <-failed; err != nil {
		return nil, fmt.Errorf("listening to the loopback device of process %d: %w", pid, err)
	}
	go c.read()
	return c, nil
}

// listenIn opens a socket that gets the packets that arrive on a process's loopback
// device.
func listenIn(pid int) (int, error) {
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return -1, err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return -1, err
	}
	ip := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_IP))
	s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(ip))
	if err != nil {
		return -1, err
	}
	const loopback = 1 // the first device of each namespace
	err = errors.Join(
		unix.Bind(s, &unix.SockaddrLinklayer{Protocol: ip, Ifindex: loopback}),
		unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer),
		unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}),
	)
	if err != nil {
		return -1, errors.Join(err, unix.Close(s))
	}
	return s, nil
}

// read reads until it is told to stop and nothing more comes.
func (c *Capture) read() {
	defer close(c.done)
	defer unix.Close(c.socket)
	buf := make([]byte, 1<<17)
	for {
		n, _, err := unix.Recvfrom(c.socket, buf, 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			select {
			case <-c.stop:
				return
			default:
			}
		case err != nil:
			c.err = fmt.Errorf("reading packets: %w", err)
			return
		default:
			c.add(buf[:n])
		}
	}
}

// add takes an IPv4 packet and ignores all except TCP (RFC 791, RFC 9293).
func (c *Capture) add(packet []byte) {
	const leastIP, leastTCP, syn, tcp = 20, 20, 1 << 1, 6
	if len(packet) < leastIP || packet[9] != tcp {
		return
	}
	header := int(packet[0]&0xf) * 4
	if total := int(binary.BigEndian.Uint16(packet[2:])); total != 0 && total <= len(packet) {
		packet = packet[:total]
	}
	if len(packet) < header+leastTCP {
		return
	}
	segment := packet[header:]
	address := func(ip, port []byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip)), binary.BigEndian.Uint16(port))
	}
	at := direction{address(packet[12:16], segment), address(packet[16:20], segment[2:])}
	sequence := binary.BigEndian.Uint32(segment[4:])
	if segment[13]&syn != 0 {
		c.streams[at] = &stream{next: sequence + 1}
		return
	}
	s, offset := c.streams[at], int(segment[12]>>4)*4
	if s == nil || s.missed || offset > len(segment) {
		return
	}
	s.add(sequence, segment[offset:])
}

// add takes the bytes sent from a sequence number on, some of them perhaps again.
func (s *stream) add(sequence uint32, data []byte) {
	again := int(int32(s.next - sequence))
	if again < 0 {
		s.missed = true
		return
	}
	if again < len(data) {
		s.data = append(s.data, data[again:]...)
		s.next += uint32(len(data) - again)
	}
}

// Streams ends the capture and returns the bytes sent in each direction of each
// connection that began during it, up to the first gap.
func (c *Capture) Streams() ([][]byte, error) {
	close(c.stop)
	<-c.done
	var all [][]byte
	for _, s := range c.streams {
		all = append(all, s.data)
	}
	return all, c.err
}
