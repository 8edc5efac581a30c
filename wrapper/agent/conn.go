package agent

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// connection is one starter.
type connection struct {
	sock *net.UnixConn

	mu    sync.Mutex
	files []*os.File // that came with requests and nobody took yet
	ended bool       // none is kept any more
}

// accept passes on connections of root, of this user, and of the pilot's.
func (a *agent) accept() {
	for {
		sock, err := a.control.sock.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of file descriptors or memory: that may pass.
			a.log.print("accept a connection: %v", err)
			<-time.After(acceptPause)
			continue
		}
		if uid, err := peerUser(sock); err != nil || !a.trusts(uid) {
			a.log.print("turned a connection of user %d away (%v)", uid, err)
			_ = sock.Close()
			continue
		}
		a.events <- event{accepted: &connection{sock: sock}}
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

// read passes on lines until the connection ends.
func (c *connection) read(events chan<- event) {
	lines := payload.NewLineReader(c, payload.MaxLine)
	for {
		line, err := lines.Next()
		if err != nil {
			events <- event{conn: c, lost: err}
			return
		}
		events <- event{conn: c, line: line}
	}
}

// Read reads bytes of requests, and keeps the open files that come along.
func (c *connection) Read(p []byte) (int, error) {
	// For one more than there is a reason to send; the kernel closes the rest.
	control := make([]byte, unix.CmsgSpace((payload.MaxPassed+1)*4))
	n, used, _, _, err := c.sock.ReadMsgUnix(p, control)
	if used > 0 {
		c.keep(control[:used])
	}
	if n <= 0 && err == nil && len(p) > 0 {
		err = io.EOF // ReadMsgUnix does not say so
	}
	return max(n, 0), err
}

func (c *connection) keep(control []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := payload.MaxPassed - len(c.files)
	if c.ended {
		room = 0
	}
	files, _ := payload.TakeFiles(control, room, "passed")
	c.files = append(c.files, files...)
}

// takeFiles gives all files that have come. A starter sends none with its next
// request before it has the answer to this one.
func (c *connection) takeFiles() []*os.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	files := c.files
	c.files = nil
	return files
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// sendTimeout bounds the writing of a message. Messages are few and small, so
// that only a starter that has stopped reading long ago runs into it.
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

// greet sends the Hello, and with it the open file by which the starter finds out
// in which container this is.
func (c *connection) greet(h payload.Hello) error {
	line, err := payload.EncodeLine(payload.Message{Hello: &h})
	if err != nil {
		return err
	}
	var files []byte
	// Opened anew each time: what was read of a file is read.
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
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	closeFiles(c.takeFiles())
}
