package vnet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
)

var subnet = netip.MustParsePrefix("198.18.7.0/24")

func newNetwork(t testing.TB) *Network {
	t.Helper()
	n, err := New(Config{Subnet: subnet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

func address(number byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 1, number} }

func ip(number byte) netip.Addr {
	a := subnet.Addr().As4()
	a[3] = number
	return netip.AddrFrom4(a)
}

// guest attaches a TCP stack to the network by its socket, as a kernel would be. It echoes what it gets on port 7.
func guest(t testing.TB, n *Network, name string, number byte) *host {
	t.Helper()
	file, err := n.Attach(name, address(number))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.FileConn(file)
	file.Close()
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHost(netip.PrefixFrom(ip(number), subnet.Bits()), mac(address(number)), 1500)
	if err != nil {
		t.Fatal(err)
	}
	go h.send(func(frame []byte) { _, _ = conn.Write(frame) })
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			h.receive(buf[:n])
		}
	}()
	listener, err := gonet.ListenTCP(h.stack, tcpip.FullAddress{NIC: nic, Port: 7}, ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		h.close()
		conn.Close()
	})
	return h
}

func echo(t testing.TB, conn net.Conn, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Error(err)
	}
	hears(t, conn)
}

// hears waits for the echo of hello.
func hears(t testing.TB, conn net.Conn) {
	t.Helper()
	buf := make([]byte, 5)
	if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != "hello" {
		t.Errorf("the echo of hello is %q, %v", buf, err)
	}
}

func TestConnections(t *testing.T) {
	n := newNetwork(t)
	one, two := guest(t, n, "one", 2), guest(t, n, "two", 3)
	conn, err := n.DialContext(t.Context(), "tcp", "198.18.7.2:7")
	echo(t, conn, err)
	conn, err = one.dial(t.Context(), netip.AddrPortFrom(ip(3), 7))
	echo(t, conn, err)
	conn, err = two.dial(t.Context(), netip.AddrPortFrom(ip(2), 7))
	echo(t, conn, err)
	for address, want := range map[string]error{"198.18.7.2:8": syscall.ECONNREFUSED, "198.18.7.9:7": syscall.EHOSTUNREACH} {
		if _, err := n.DialContext(t.Context(), "tcp", address); !errors.Is(err, want) {
			t.Errorf("connecting to %s: %v, want %v", address, err, want)
		}
	}
	for address, want := range map[string]string{"127.0.0.1:7": "198.18.7.0/24", "one:7": "one"} {
		if _, err := n.DialContext(t.Context(), "tcp", address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("connecting to %s: %v, want %s in it", address, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.DialContext(ctx, "tcp", "198.18.7.2:7"); !errors.Is(err, context.Canceled) {
		t.Errorf("connecting with an ended context: %v", err)
	}
}

// The host waits for a guest that boots.
func TestGuestThatBoots(t *testing.T) {
	n := newNetwork(t)
	witness := attach(t, n, "witness", 9)
	type result struct {
		conn net.Conn
		err  error
	}
	dialed := make(chan result, 1)
	go func() {
		conn, err := n.DialContext(t.Context(), "tcp", "198.18.7.2:7")
		dialed <- result{conn, err}
	}()
	// The host has asked for the guest's hardware address (ARP) when the witness gets a frame.
	if _, err := witness.conn.Read(make([]byte, 1<<16)); err != nil {
		t.Fatal(err)
	}
	guest(t, n, "one", 2)
	r := <-dialed
	echo(t, r.conn, r.err)
}

// A connection to a guest ends with it, at once.
func TestConnectionToAGuestThatEnds(t *testing.T) {
	n := newNetwork(t)
	guest(t, n, "one", 2)
	guest(t, n, "two", 3)
	conn, err := n.DialContext(t.Context(), "tcp", "198.18.7.2:7")
	if err != nil {
		t.Fatal(err)
	}
	other, err := n.DialContext(t.Context(), "tcp", "198.18.7.3:7")
	read := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		read <- err
	}()
	if err := n.Detach("one"); err != nil {
		t.Error(err)
	}
	if err := <-read; err == nil {
		t.Error("a byte comes from a guest that said nothing")
	}
	conn.Close()
	if _, known := n.host.neighbour(ip(2)); known {
		t.Error("the host still knows where the guest was")
	}
	echo(t, other, err)
	if got := len(n.ports[mac(address(3))].connections); got > 0 {
		t.Errorf("%d closed connections are remembered", got)
	}
}

// What 64 MiB take from one guest to another, and from the host to a guest.
func BenchmarkThroughput(b *testing.B) {
	n := newNetwork(b)
	one := guest(b, n, "one", 2)
	two := guest(b, n, "two", 3)
	listener, err := gonet.ListenTCP(two.stack, tcpip.FullAddress{NIC: nic, Port: 9}, ipv4.ProtocolNumber)
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	to := netip.AddrPortFrom(ip(3), 9)
	for _, from := range []struct {
		name string
		dial func() (net.Conn, error)
	}{
		{"guest to guest", func() (net.Conn, error) { return one.dial(b.Context(), to) }},
		{"host to guest", func() (net.Conn, error) { return n.DialContext(b.Context(), "tcp", to.String()) }},
	} {
		b.Run(from.name, func(b *testing.B) {
			const size = 64 << 20
			b.SetBytes(size)
			for b.Loop() {
				conn, err := from.dial()
				if err != nil {
					b.Fatal(err)
				}
				go func() {
					defer conn.Close()
					_, _ = conn.Write(make([]byte, size))
				}()
				c, err := listener.Accept()
				if err != nil {
					b.Fatal(err)
				}
				got, err := io.Copy(io.Discard, c)
				c.Close()
				if err != nil || got != size {
					b.Fatalf("%d bytes came, %v", got, err)
				}
			}
		})
	}
}
