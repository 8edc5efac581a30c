package agent

import (
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// connection is one starter.
type connection struct {
	sock  *net.UnixConn
	files *payload.FileReader // that came with requests
}

func newConnection(sock *net.UnixConn) *connection {
	return &connection{sock: sock, files: payload.NewFileReader(sock, maxPending)}
}

// accept passes on connections of root, of this user and of the pilot's user.
func (a *agent) accept() {
	for {
		sock, err := a.control.sock.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of file descriptors or memory: this may be temporary.
			a.log.print("accept a connection: %v", err)
			<-time.After(acceptPause)
			continue
		}
		if uid, err := peerUser(sock); err != nil || !a.trusts(uid) {
			a.log.print("turned a connection of user %d away (%v)", uid, err)
			_ = sock.Close()
			continue
		}
		a.events <- event{accepted: newConnection(sock)}
	}
}

func (a *agent) trusts(uid int) bool {
	return uid == 0 || uid == os.Geteuid() || a.pilot != nil && uid == a.pilot.uid
}

const acceptPause = 100 * time.Millisecond

func peerUser(sock *net.UnixConn) (int, error) {
	sys, err := sock.SyscallConn()
	if err != nil {
		return -1, err
	}
	uid := -1
	var credErr error
	err = sys.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if credErr = err; err == nil {
			uid = int(cred.Uid)
		}
	})
	return uid, errors.Join(err, credErr)
}

// maxPending bounds the open files that have arrived and are not used yet. The loop is at
// most two requests behind.
const maxPending = 4 * payload.MaxExecFiles

// read passes on lines until the connection ends. It then calls urgent before it reports
// the end.
func (c *connection) read(events chan<- event, urgent func()) {
	lines := payload.NewLineReader(c.files, payload.MaxLine)
	for {
		line, err := lines.Next()
		if err != nil {
			urgent()
			events <- event{conn: c, lost: err}
			return
		}
		events <- event{conn: c, line: line}
	}
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// sendTimeout bounds the writing of a message. Messages are few and small, so only a
// starter that stopped reading long ago reaches it.
const sendTimeout = 5 * time.Second

func (c *connection) send(m payload.Message) error {
	line, err := payload.EncodeLine(m)
	if err != nil {
		return err
	}
	if err := c.sock.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, err = c.sock.Write(line)
	return err
}

// greet sends the Hello, and with it the open file from which the starter learns which
// container this is.
func (c *connection) greet(h payload.Hello) error {
	line, err := payload.EncodeLine(payload.Message{Hello: &h})
	if err != nil {
		return err
	}
	var files []byte
	// Opened anew each time: a reader moves the offset.
	if fd, err := unix.Open(payload.CgroupFile, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		defer func() { _ = unix.Close(fd) }()
		files = unix.UnixRights(fd)
	}
	if err := c.sock.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	n, _, err := c.sock.WriteMsgUnix(line, files, nil)
	if err == nil && n < len(line) {
		_, err = c.sock.Write(line[n:])
	}
	return err
}

func (c *connection) close() {
	_ = c.sock.Close()
	c.files.Close()
}
