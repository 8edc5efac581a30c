package jointwatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// end is how it ended to follow a pod with a leader.
type end int

const (
	done     end = iota // the reader has had enough, or its time is over
	heard               // the leader has gone after it had told something
	unheard             // there was none
	unusable            // it cannot be relied on
)

// errFrame is the error of bytes that no leader sends.
var errFrame = errors.New("read what another starter passes on of the pod")

// listen follows the pod with the leader that there is.
func (w *Watch) listen(ctx context.Context, dir *os.Root, r *reader) (end, error) {
	conn, err := dial(ctx, dir)
	if err != nil {
		return unheard, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	result := unheard
	for {
		if err := conn.SetReadDeadline(time.Now().Add(w.Pace.Silence)); err != nil {
			return unusable, err
		}
		pod, err := decode(conn)
		switch {
		case ctx.Err() != nil:
			return done, nil
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, errFrame):
			return unusable, err
		case err != nil:
			return result, err
		case pod != nil:
			result = heard
			if r.take(pod) {
				return done, nil
			}
		}
	}
}

// inDir calls f with a path of the leader's socket that is short: that of a socket is
// limited to 107 bytes (unix(7)), that of the private directory is not.
func inDir(dir *os.Root, f func(path string) error) error {
	at, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer at.Close()
	return f(filepath.Join("/proc/self/fd", strconv.Itoa(int(at.Fd())), socketFile))
}

func dial(ctx context.Context, dir *os.Root) (net.Conn, error) {
	var conn net.Conn
	err := inDir(dir, func(path string) (err error) {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "unix", path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the starter that watches the pod: %w", err)
	}
	return conn, nil
}

// open makes the leader's socket. The caller has the lock.
func open(dir *os.Root) (*net.UnixListener, error) {
	if err := dir.Remove(socketFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket of another starter: %w", err)
	}
	var l *net.UnixListener
	err := inDir(dir, func(path string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen in the private directory: %w", err)
	}
	l.SetUnlinkOnClose(false) // the descriptor in the path is closed then; the next leader removes it
	return l, nil
}
