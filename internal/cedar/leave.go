package cedar

import (
	"fmt"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// leave makes a socket, before it connects, leave from the address that the network says for its protocol (condor_io/sock.cpp:Sock::bind).
// It is the Control of a net.Dialer.
func (n Network) leave(network, _ string, raw syscall.RawConn) error {
	text := n.FromIPv4
	if network == "tcp6" {
		text = n.FromIPv6
	}
	if text == "" {
		return nil
	}
	fail := func(err error) error {
		return fmt.Errorf("leave from the address %s, which NETWORK_INTERFACE chooses since BIND_ALL_INTERFACES is false: %w", text, err)
	}
	from, err := netip.ParseAddr(text)
	if err != nil {
		return fail(err)
	}
	var to unix.Sockaddr
	switch {
	case network == "tcp6":
		to = &unix.SockaddrInet6{Addr: from.As16()}
	case from.Is4():
		to = &unix.SockaddrInet4{Addr: from.As4()}
	default:
		return fail(fmt.Errorf("it is not of IPv4"))
	}
	if cerr := raw.Control(func(fd uintptr) { err = unix.Bind(int(fd), to) }); err == nil {
		err = cerr
	}
	if err != nil {
		return fail(err)
	}
	return nil
}
