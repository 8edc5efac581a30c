package harness

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Capture listens to the TCP connections of a port on a network namespace's loopback device.
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
	first uint32 // sequence number of its first byte
	next  uint32 // that of the byte that follows
	data  []byte
	early map[uint32][]byte // what came before its turn, by sequence number
}

// captureBuffer is how many bytes of packets the kernel may keep until they are read.
const captureBuffer = 128 << 20

// NewCapture begins to listen to a port in the network namespace of a process. It needs
// CAP_NET_RAW there (packet(7)).
func NewCapture(pid int, port uint16) (*Capture, error) {
	c := &Capture{stop: make(chan struct{}), done: make(chan struct{}), streams: make(map[direction]*stream)}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread leaves its namespace
		var err error
		c.socket, err = listenIn(pid, port)
		failed <- err
	}()
	if err := <-failed; err != nil {
		return nil, fmt.Errorf("listening to the loopback device of process %d: %w", pid, err)
	}
	go c.read()
	return c, nil
}

// listenIn opens a socket that gets the packets that arrive on a process's loopback
// device, from or to a port.
func listenIn(pid int, port uint16) (int, error) {
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return -1, err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return -1, err
	}
	filter, err := ofPort(port)
	if err != nil {
		return -1, err
	}
	const none = 0 // no packets before it is bound
	s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, none)
	if err != nil {
		return -1, err
	}
	const loopback = 1 // the first device of each namespace
	err = errors.Join(
		unix.SetsockoptSockFprog(s, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, filter),
		unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer),
		unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}),
	)
	if err == nil {
		ip := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_IP))
		err = unix.Bind(s, &unix.SockaddrLinklayer{Protocol: ip, Ifindex: loopback})
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(s))
	}
	return s, nil
}

// ofPort is a filter of the kernel's for TCP packets over IPv4 from or to a port: with all
// that others send, packets would come faster than they are read.
func ofPort(port uint16) (*unix.SockFprog, error) {
	const protocol, tcp, source, destination, all = 9, 6, 0, 2, 1 << 18
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: protocol, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: tcp, SkipTrue: 6},
		bpf.LoadMemShift{Off: 0}, // the length of the IP header
		bpf.LoadIndirect{Off: source, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(port), SkipTrue: 2},
		bpf.LoadIndirect{Off: destination, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(port), SkipTrue: 1},
		bpf.RetConstant{Val: all},
		bpf.RetConstant{Val: 0},
	})
	if err != nil {
		return nil, fmt.Errorf("assembling a filter for port %d: %w", port, err)
	}
	filter := make([]unix.SockFilter, len(program))
	for i, in := range program {
		filter[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	return &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}, nil
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
				c.err = c.gaps()
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

// gaps is an error if something in the middle of a stream is missing.
func (c *Capture) gaps() error {
	incomplete := 0
	for _, s := range c.streams {
		if len(s.early) > 0 {
			incomplete++
		}
	}
	if incomplete == 0 {
		return nil
	}
	stats, err := unix.GetsockoptTpacketStats(c.socket, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return fmt.Errorf("asking for the number of packets that were dropped: %w", err)
	}
	return fmt.Errorf("%d of %d streams have gaps; the kernel dropped %d of %d packets, which came faster than they were read", incomplete, len(c.streams), stats.Drops, stats.Packets)
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
		if s := c.streams[at]; s == nil || s.first != sequence+1 { // or it is sent again
			c.streams[at] = &stream{first: sequence + 1, next: sequence + 1, early: make(map[uint32][]byte)}
		}
		return
	}
	s, offset := c.streams[at], int(segment[12]>>4)*4
	if s == nil || offset > len(segment) {
		return
	}
	s.add(sequence, segment[offset:])
}

// add takes the bytes sent from a sequence number on, some of them perhaps again. The packets
// of two CPUs may come in another order than they were sent in.
func (s *stream) add(sequence uint32, data []byte) {
	for {
		again := int(int32(s.next - sequence))
		if again < 0 {
			if len(data) > len(s.early[sequence]) {
				s.early[sequence] = bytes.Clone(data)
			}
			return
		}
		if again < len(data) {
			s.data = append(s.data, data[again:]...)
			s.next += uint32(len(data) - again)
		}
		var found bool
		for sequence, data = range s.early {
			if found = int32(s.next-sequence) >= 0; found {
				delete(s.early, sequence)
				break
			}
		}
		if !found {
			return
		}
	}
}

// Streams ends the capture and returns the bytes sent in each direction of each
// connection that began during it. A gap is an error.
func (c *Capture) Streams() ([][]byte, error) {
	close(c.stop)
	<-c.done
	var all [][]byte
	for _, s := range c.streams {
		all = append(all, s.data)
	}
	return all, c.err
}
