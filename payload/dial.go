package payload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/rescue"
)

// slowPoll is how often Dial looks without an inotify event, for file systems where inotify
// does not report changes from another container.
const slowPoll = time.Second

// helloTimeout bounds the wait for the Hello of a wrapper that accepted the connection.
const helloTimeout = 10 * time.Second

// errPeer means that the listener is not trusted.
var errPeer = errors.New("refused to trust the listener")

// Dial waits until ctx ends for a wrapper that announces the wanted nonce, and connects to
// it. It ignores sockets of dead wrappers and wrappers with another nonce. It waits for a
// busy wrapper, which may still be ending an earlier connection.
func Dial(ctx context.Context, o Options) (*Client, error) {
	watch, err := watchSocket(o.Dir)
	if err != nil {
		return nil, err
	}
	// Closing an inotify file with watches takes the kernel some 15 ms (an SRCU grace
	// period); nobody needs to wait for that.
	defer rescue.Go(watch.Close)
	if o.poll == 0 {
		o.poll = slowPoll
	}
	poll := time.NewTicker(o.poll)
	defer poll.Stop()
	var last error // of the last attempt that ran before ctx ended
	for {
		watch.Arm()
		c, err := connect(ctx, o)
		if err == nil {
			return c, nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		// A wrapper with another nonce will never have this one, so its calls do not matter.
		// Those of the right one do: look again, now that they are heard.
		if other := errors.Is(err, errNonce); other != watch.onlyNew {
			if watch.onlyNew = other; !other && ctx.Err() == nil {
				continue
			}
		}
		if errors.Is(err, errPeer) || errors.Is(err, errProtocol) || errors.Is(err, fs.ErrPermission) {
			return nil, err // waiting would not help
		}
		select {
		case <-watch.Events():
		case <-poll.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a wrapper in %s: %w (last attempt: %w)", o.Dir, context.Cause(ctx), last)
		}
	}
}

// Peek gets the Hello of the wrapper that listens in dir now, without keeping the
// connection. It does not wait. A wrapper that left or died is an error.
func Peek(ctx context.Context, dir string) (Hello, error) {
	c, err := connect(ctx, Options{Dir: dir})
	var other *helloError
	switch {
	case err == nil:
		return c.hello, c.Close()
	case errors.As(err, &other):
		return other.hello, nil
	default:
		return Hello{}, err
	}
}

// errNonce means that the wrapper is not the one that is waited for.
var errNonce = errors.New("was created before the binding")

var errProtocol = errors.New("the wrapper speaks another version of the protocol")

// helloError is a wrapper that answered but cannot be used.
type helloError struct {
	hello Hello
	err   error
}

func (e *helloError) Error() string { return e.err.Error() }
func (e *helloError) Unwrap() error { return e.err }

func connect(ctx context.Context, o Options) (*Client, error) {
	conn, err := dialUnix(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	c, words := newClient(conn, o.Dir, o.Log), &greeting{conn: conn}
	lines := NewLineReader(words, MaxLine)
	err = greet(ctx, c, lines, o)
	if err == nil {
		c.cgroups = words.cgroups(c.log)
	}
	words.greeted()
	if err != nil {
		words.over()
		_ = conn.Close()
		return nil, err
	}
	rescue.Go(func() {
		if err := rescue.Do(func() error { c.receive(lines, words); return nil }); err != nil {
			c.end(err)
		}
	})
	return c, nil
}

// greet reads who the wrapper is and decides whether to talk to it.
func greet(ctx context.Context, c *Client, lines *LineReader, o Options) error {
	conn, err := c.conn, error(nil)
	if c.peerPID, err = checkPeer(conn, o); err != nil {
		return err
	}
	deadline := time.Now().Add(helloTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	line, err := lines.Next()
	if err != nil {
		stop()
		return fmt.Errorf("wait for the hello of the wrapper in %s: %w", o.Dir, err)
	}
	if !stop() {
		return context.Cause(ctx)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	m, err := DecodeMessage(line)
	if err != nil {
		return fmt.Errorf("the wrapper in %s sent %.200q instead of a hello: %w", o.Dir, line, err)
	}
	if m.Hello == nil {
		return fmt.Errorf("the wrapper in %s sent %.200q instead of a hello", o.Dir, line)
	}
	c.hello = *m.Hello
	if c.hello.Protocol != Protocol {
		return fmt.Errorf("%w: %d, this starter speaks %d; are starter and wrapper from the same installation?",
			errProtocol, c.hello.Protocol, Protocol)
	}
	if o.Nonce != "" && c.hello.Nonce != o.Nonce {
		return &helloError{c.hello, fmt.Errorf("the wrapper in %s (boot %s) %w", o.Dir, c.hello.Boot, errNonce)}
	}
	if c.hello.Busy {
		return &helloError{c.hello, fmt.Errorf("%w: %s", ErrBusy, o.Dir)}
	}
	return nil
}

// checkPeer makes sure that the listener is root or this user, and returns its process ID
// as seen from here (0 if it is not visible). A job that ever reached the control directory
// could bind a socket there, but would not be root. A wrapper that runs as the payload's user can be replaced by it, so
// nothing else may be reached through its directory.
func checkPeer(conn *net.UnixConn, o Options) (int, error) {
	peer := o.peer
	if peer == nil {
		peer = credentialsOf
	}
	cred, err := peer(conn)
	if err != nil {
		return 0, fmt.Errorf("get the credentials of the wrapper: %w", err)
	}
	if o.User != 0 {
		if int(cred.Uid) != o.User {
			return 0, fmt.Errorf("%w: it runs as user %d, not as user %d", errPeer, cred.Uid, o.User)
		}
		return int(cred.Pid), nil
	}
	if cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		return 0, fmt.Errorf("%w: it runs as user %d, neither root nor user %d", errPeer, cred.Uid, os.Geteuid())
	}
	return int(cred.Pid), nil
}

// credentialsOf asks the kernel who listened (unix(7), SO_PEERCRED).
func credentialsOf(conn *net.UnixConn) (cred *unix.Ucred, err error) {
	sys, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var credErr error
	err = sys.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(err, credErr)
}

// dialUnix connects to the socket in dir. The path of a socket is limited to 107 bytes
// (unix(7)), that of a control directory is not, so this goes through /proc/self/fd.
func dialUnix(ctx context.Context, dir string) (*net.UnixConn, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open control directory %s: %w", dir, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join("/proc/self/fd", strconv.Itoa(fd), SocketName))
	if err != nil {
		return nil, fmt.Errorf("connect to the wrapper in %s: %w", dir, err)
	}
	return conn.(*net.UnixConn), nil
}
