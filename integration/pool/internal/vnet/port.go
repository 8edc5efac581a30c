package vnet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// queued is how many frames wait for one receiver before more are dropped: a few full TCP windows. The socket itself
	// holds only net.unix.max_dgram_qlen frames, ten by default.
	queued = 1024
	// socketBuffer is what each end of a socketpair asks for, in bytes. Without CAP_NET_ADMIN the kernel gives no more
	// than net.core.wmem_max.
	socketBuffer = 4 << 20
)

// A port is a place of the switch.
type port struct {
	name string
	// socket is the switch's end of the cable; the host has none.
	socket *net.UnixConn
	queue  chan []byte
	done   chan struct{}
	close  func()
	// connections are those of the host to this guest. They belong to Network.mu.
	connections map[*connection]bool
}

func newPort(name string) *port {
	p := &port{name: name, queue: make(chan []byte, queued), done: make(chan struct{}), connections: map[*connection]bool{}}
	p.close = sync.OnceFunc(func() {
		close(p.done)
		for conn := range p.connections {
			conn.abort()
		}
		if p.socket != nil {
			p.socket.Close()
		}
	})
	return p
}

// deliver never waits; a frame for which there is no room is lost, as on any Ethernet.
func (p *port) deliver(frame []byte) {
	select {
	case p.queue <- frame:
	default:
	}
}

// run hands each queued frame to the receiver until the port is closed.
func (p *port) run(receive func(frame []byte)) {
	for {
		select {
		case frame := <-p.queue:
			receive(frame)
		case <-p.done:
			return
		}
	}
}

// write waits for room in the socket. It drops the frame if the guest has ended or the frame is too large.
func (p *port) write(frame []byte) {
	_, _ = p.socket.Write(frame)
}

// read hands on what the guest sends until the port is closed. Frames that exceed the MTU are dropped.
func (p *port) read(mtu int, forward func(frame []byte)) {
	most := ethernetHeader + vlanTag + mtu
	buf := make([]byte, most+1)
	for {
		n, err := p.socket.Read(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err == nil && n <= most:
			forward(slices.Clone(buf[:n]))
		}
	}
}

// socketpair returns the switch's end and the guest's.
func socketpair(name string) (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a pair of sockets: %w", err)
	}
	for _, fd := range fds {
		for _, option := range []struct{ force, ask int }{{unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}, {unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}} {
			err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option.force, socketBuffer)
			if errors.Is(err, syscall.EPERM) {
				err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option.ask, socketBuffer)
			}
			if err != nil {
				unix.Close(fds[0])
				unix.Close(fds[1])
				return nil, nil, fmt.Errorf("enlarging a socket's buffer: %w", err)
			}
		}
	}
	ours, guest := os.NewFile(uintptr(fds[0]), "switch's end of "+name), os.NewFile(uintptr(fds[1]), name)
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		guest.Close()
		return nil, nil, fmt.Errorf("using a socket: %w", err)
	}
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		guest.Close()
		return nil, nil, fmt.Errorf("using a socket: it is a %T", conn)
	}
	return socket, guest, nil
}
