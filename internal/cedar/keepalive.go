package cedar

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// How a connection finds out that its peer is gone (sock.cpp:set_keepalive).
const (
	keepAliveIdle     = 360 * time.Second // the default of TCP_KEEPALIVE_INTERVAL
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 5
)

// KeepAlive sets how soon a TCP connection whose peer is gone breaks: after
// idle, the value of TCP_KEEPALIVE_INTERVAL, the peer is probed, and nothing
// sent may stay unacknowledged for longer either. With 0 the system decides
// how often to probe; a negative value leaves the connection as it is. Every
// connection of this package starts with HTCondor's default of 360 s. Other
// connections than TCP are left alone.
func KeepAlive(c net.Conn, idle time.Duration) error {
	t, ok := c.(*net.TCPConn)
	if !ok || idle < 0 {
		return nil
	}
	if idle == 0 {
		if err := t.SetKeepAlive(true); err != nil {
			return fmt.Errorf("switch keep-alive on: %w", err)
		}
		return nil
	}
	err := t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: idle, Interval: keepAliveInterval, Count: keepAliveCount})
	if err != nil {
		return fmt.Errorf("set keep-alive to %v: %w", idle, err)
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return fmt.Errorf("set keep-alive to %v: %w", idle, err)
	}
	var setErr error
	err = raw.Control(func(fd uintptr) {
		limit := idle + keepAliveCount*keepAliveInterval
		setErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit/time.Millisecond))
	})
	if err = errors.Join(err, setErr); err != nil {
		return fmt.Errorf("set keep-alive to %v: %w", idle, err)
	}
	return nil
}

// prepare gives a connection the options that HTCondor gives its own. What
// the kernel does not have is done without.
func prepare(c net.Conn) net.Conn {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetNoDelay(true)
	}
	_ = KeepAlive(c, keepAliveIdle)
	return c
}
