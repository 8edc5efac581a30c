package cedar

import (
	"context"
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

const (
	// passDeadline is how long a shared port may take to pass a connection
	// that it has announced. The real one does it in one go.
	passDeadline = 20 * time.Second
	// passLimit is how many announcements may be under way; beyond it, the
	// oldest is dropped. Everybody in the network namespace can connect to an
	// abstract socket, and find its name in /proc/net/unix.
	passLimit = 64
)

// passMessage is the one message that precedes a passed descriptor: packet
// header and the number SHARED_PORT_PASS_SOCK.
var passMessage = [13]byte{1, 0, 0, 0, 8, 12: SharedPortPassSock}

// SharedPort is a listener of the TCP connections that a condor_shared_port
// passes on through a unix socket (shared_port_endpoint.cpp:
// HandleListenerAccept). Whatever else comes through the socket is dropped.
type SharedPort struct {
	// Refuse, if set before the first Accept, is asked about the user id of
	// every process that connects to the unix socket; true closes the
	// connection unread. The job of a starter, for one, has nothing to pass.
	Refuse func(uid uint32) bool

	unix    *net.UnixListener
	conns   chan net.Conn
	pending handshakes
	done    chan struct{}
	start   sync.Once
	stop    sync.Once
	err     error // why accepting ended; valid once done is closed
}

// SharedPortListener returns a listener of the TCP connections that are passed
// on through the unix socket l; it is a *SharedPort.
func SharedPortListener(l *net.UnixListener) net.Listener {
	return &SharedPort{unix: l, conns: make(chan net.Conn, passLimit), done: make(chan struct{})}
}

// Accept waits for the next connection.
func (l *SharedPort) Accept() (net.Conn, error) {
	l.start.Do(func() { rescue.Go(l.run) })
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, l.err
	}
}

// Close ends the listener and its unix socket.
func (l *SharedPort) Close() error {
	l.end(net.ErrClosed)
	return l.unix.Close()
}

// Addr returns the address of the unix socket.
func (l *SharedPort) Addr() net.Addr { return l.unix.Addr() }

func (l *SharedPort) end(err error) {
	l.stop.Do(func() {
		l.err = fmt.Errorf("accept from the shared port: %w", err)
		close(l.done)
		l.drain()
	})
}

func (l *SharedPort) run() {
	for {
		c, err := l.unix.AcceptUnix()
		if err != nil {
			if retryAccept(err, l.done) {
				continue
			}
			l.end(err)
			return
		}
		if l.refuses(c) {
			_ = c.Close()
			continue
		}
		leave := l.pending.enter(c, passLimit)
		rescue.Go(func() {
			conn, err := receivePassed(c)
			leave()
			_ = c.Close()
			if err != nil {
				return
			}
			l.deliver(conn)
		})
	}
}

// deliver hands a connection to Accept. When nobody takes them any more, or
// far too many come, it is closed.
func (l *SharedPort) deliver(conn net.Conn) {
	select {
	case l.conns <- conn:
	default:
		_ = conn.Close()
	}
	select {
	case <-l.done:
		l.drain()
	default:
	}
}

func (l *SharedPort) drain() {
	for {
		select {
		case c := <-l.conns:
			_ = c.Close()
		default:
			return
		}
	}
}

// refuses reports whether the process at the other end may not pass
// connections. One whose identity the kernel does not tell may not.
func (l *SharedPort) refuses(c *net.UnixConn) bool {
	if l.Refuse == nil {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	refused := true
	_ = raw.Control(func(fd uintptr) {
		// unix(7): the credentials are those at the time of connect.
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			refused = l.Refuse(cred.Uid)
		}
	})
	return refused
}

// retryAccept reports whether accepting may go on after an error: the
// connection went away by itself, or descriptors ran out, which is waited for
// until done.
func retryAccept(err error, done <-chan struct{}) bool {
	switch {
	case errors.Is(err, unix.ECONNABORTED), errors.Is(err, unix.EINTR):
		return true
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
		select {
		case <-time.After(acceptPause):
			return true
		case <-done:
		}
	}
	return false
}

// acceptPause is how long accepting rests when descriptors have run out.
const acceptPause = 50 * time.Millisecond

// receivePassed takes the connection that the peer passes. It reads exactly
// the message first: a byte more, and the kernel would drop the descriptor
// that comes with it.
func receivePassed(c *net.UnixConn) (net.Conn, error) {
	if err := c.SetDeadline(time.Now().Add(passDeadline)); err != nil {
		return nil, fmt.Errorf("receive a passed connection: %w", err)
	}
	var m [len(passMessage)]byte
	if _, err := io.ReadFull(c, m[:]); err != nil {
		return nil, fmt.Errorf("receive a passed connection: %w", err)
	}
	if m != passMessage {
		return nil, &ProtocolError{Detail: "the first message on a shared port socket is not SHARED_PORT_PASS_SOCK"}
	}
	fd, err := receiveFD(c)
	if err != nil {
		return nil, fmt.Errorf("receive a passed connection: %w", err)
	}
	f := os.NewFile(uintptr(fd), "passed connection")
	defer f.Close()
	if err := checkPassed(fd); err != nil {
		return nil, fmt.Errorf("receive a passed connection: %w", err)
	}
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("receive a passed connection: %w", err)
	}
	return conn, nil
}

// checkPassed makes sure that the descriptor is a connected TCP socket, and
// not something on which reads would block or have effects.
func checkPassed(fd int) error {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return fmt.Errorf("the descriptor is not a socket: %w", err)
	}
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return fmt.Errorf("find out the family of the socket: %w", err)
	}
	if kind != unix.SOCK_STREAM || domain != unix.AF_INET && domain != unix.AF_INET6 {
		return fmt.Errorf("the socket is not TCP (family %d, type %d)", domain, kind)
	}
	if _, err := unix.Getpeername(fd); err != nil {
		return fmt.Errorf("the socket is not connected: %w", err)
	}
	return nil
}

// receiveFD receives one byte and the descriptor that comes with it, which is
// closed on exec from the beginning.
func receiveFD(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	var data [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	var n, oobn, flags int
	var recvErr error
	err = raw.Read(func(s uintptr) bool {
		n, oobn, flags, _, recvErr = unix.Recvmsg(int(s), data[:], oob, unix.MSG_CMSG_CLOEXEC)
		return recvErr != unix.EAGAIN && recvErr != unix.EINTR
	})
	if err == nil {
		err = recvErr
	}
	if err != nil {
		return -1, fmt.Errorf("recvmsg: %w", err)
	}
	fds := parseFDs(oob[:oobn])
	if n != 1 || len(fds) != 1 || flags&unix.MSG_CTRUNC != 0 {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return -1, fmt.Errorf("%d bytes with %d descriptors, instead of one with one", n, len(fds))
	}
	return fds[0], nil
}

func parseFDs(oob []byte) (fds []int) {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range list {
		if some, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, some...)
		}
	}
	return fds
}

// PassConn passes a TCP connection to the endpoint that listens on the unix
// socket address, as condor_shared_port does (shared_port_client.cpp:
// PassSocket). The connection stays open here as well.
func PassConn(ctx context.Context, address string, conn *net.TCPConn) error {
	var d net.Dialer
	u, err := d.DialContext(ctx, "unix", address)
	if err != nil {
		return fmt.Errorf("pass a connection: %w", err)
	}
	defer u.Close()
	stop := context.AfterFunc(ctx, func() { _ = u.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := u.Write(passMessage[:]); err != nil {
		return fmt.Errorf("pass a connection: %w", err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("pass a connection: %w", err)
	}
	var sendErr error
	err = raw.Control(func(fd uintptr) {
		_, _, sendErr = u.(*net.UnixConn).WriteMsgUnix([]byte{0}, unix.UnixRights(int(fd)), nil)
	})
	if err = errors.Join(err, sendErr); err != nil {
		return fmt.Errorf("pass a connection: %w", err)
	}
	return nil
}

// connectShared asks the shared port at the other end of s to pass the
// connection on to an endpoint. There is no answer; what is sent next is for
// the endpoint, and so is the handshake's digest (shared_port_client.cpp:
// SharedPortIdConnect).
func (s *Stream) connectShared(id, name string, timeout time.Duration) error {
	seconds := int64(-1)
	if timeout > 0 {
		seconds = max(1, int64(timeout/time.Second))
	}
	s.PutInt(SharedPortConnect)
	s.PutString(id)
	s.PutString(name)
	s.PutInt(seconds)
	s.PutInt(0) // no further arguments
	if err := s.EndMessage(); err != nil {
		return err
	}
	if id != "self" {
		s.resetTranscript()
	}
	return nil
}
