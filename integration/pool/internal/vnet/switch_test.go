package vnet

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

var broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// A cable is a guest's end of its socketpair, for tests that make their frames themselves.
type cable struct {
	t      testing.TB
	conn   net.Conn
	number byte
}

func attach(t testing.TB, n *Network, name string, number byte) cable {
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
	t.Cleanup(func() { conn.Close() })
	return cable{t, conn, number}
}

func frameTo(to, from net.HardwareAddr, text string) []byte {
	return slices.Concat(to, from, []byte("\x88\xb5"+text)) // 0x88b5: a type for experiments (IEEE 802)
}

func (c cable) send(to net.HardwareAddr, text string) {
	c.t.Helper()
	c.raw(frameTo(to, address(c.number), text))
}

func (c cable) raw(frame []byte) {
	c.t.Helper()
	if _, err := c.conn.Write(frame); err != nil {
		c.t.Fatal(err)
	}
}

// gets checks which frames come next, in order. Frames of one sender do not overtake each other, so a frame that comes
// shows that an earlier one of that sender was dropped.
func (c cable) gets(want ...string) {
	c.t.Helper()
	buf := make([]byte, 1<<16)
	for _, w := range want {
		n, err := c.conn.Read(buf)
		if err != nil || n < ethernetHeader || string(buf[ethernetHeader:n]) != w {
			c.t.Fatalf("guest %d gets %q, %v; want %q", c.number, buf[min(n, ethernetHeader):n], err, w)
		}
	}
}

func TestFrames(t *testing.T) {
	n := newNetwork(t)
	one, two, three := attach(t, n, "one", 2), attach(t, n, "two", 3), attach(t, n, "three", 4)
	one.send(broadcast, "to all")
	one.send(address(3), "to two")
	one.send(address(4), "to three")
	one.send(address(9), "to nobody")
	one.send(address(2), "to itself")
	one.raw(nil)
	one.raw(make([]byte, ethernetHeader-1))
	one.send(address(3), strings.Repeat("x", 1500+vlanTag+1))
	one.send(address(3), strings.Repeat("y", 1500+vlanTag))
	one.send(broadcast, "end")
	two.gets("to all", "to two", strings.Repeat("y", 1500+vlanTag), "end")
	three.gets("to all", "to three", "end")
	two.send(address(2), "back")
	one.gets("back")
}

// forward passes a frame on as if the guest had sent it, and returns when the switch is done with it.
func (c cable) forward(n *Network, to net.HardwareAddr, text string) {
	c.t.Helper()
	n.forwardFrom(n.ports[mac(address(c.number))])(frameTo(to, address(c.number), text))
}

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		name string
		cut  [][]string
		// blocked are the pairs that do not reach each other, in both orders.
		blocked string
	}{
		{name: "nothing"},
		{name: "two of them", cut: [][]string{{"one", "two"}}, blocked: "12 21"},
		{name: "two pairs", cut: [][]string{{"one", "two"}, {"three", "two"}}, blocked: "12 21 23 32"},
		{name: "one from two", cut: [][]string{{"one", "two", "three"}}, blocked: "12 21 13 31"},
		{name: "one from all", cut: [][]string{{"two"}}, blocked: "12 21 23 32"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := newNetwork(t)
			cables := []cable{attach(t, n, "one", 1), attach(t, n, "two", 2), attach(t, n, "three", 3)}
			for _, names := range tc.cut {
				if err := n.Cut(names[0], names[1:]...); err != nil {
					t.Fatal(err)
				}
			}
			// Who comes back is still cut off.
			if err := n.Detach("three"); err != nil {
				t.Fatal(err)
			}
			cables[2] = attach(t, n, "three", 3)
			send := func(text string) {
				for _, from := range cables {
					from.forward(n, broadcast, text)
					for _, to := range cables {
						from.forward(n, address(to.number), text)
					}
				}
			}
			send("cut")
			n.Heal()
			send("healed")
			for _, to := range cables {
				for _, text := range []string{"cut", "healed"} {
					for _, from := range cables {
						if to != from && (text == "healed" || !strings.Contains(tc.blocked, fmt.Sprint(to.number)+fmt.Sprint(from.number))) {
							to.gets(text, text)
						}
					}
				}
			}
		})
	}
}

// A guest that is cut off from all others is still within the host's reach, unless the host is named.
func TestCutFromTheHost(t *testing.T) {
	n := newNetwork(t)
	guest(t, n, "one", 2)
	if err := n.Cut("one"); err != nil {
		t.Fatal(err)
	}
	conn, err := n.DialContext(t.Context(), "tcp", "198.18.7.2:7")
	echo(t, conn, err)
	if conn, err = n.DialContext(t.Context(), "tcp", "198.18.7.2:7"); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := n.Cut("one", Host); err != nil {
		t.Fatal(err)
	}
	if !n.isCut("one", Host) || !n.isCut(Host, "one") {
		t.Error("the guest reaches the host or the other way round")
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	// TCP repeats what was lost.
	n.Heal()
	hears(t, conn)
}

// A guest that takes no frames, as one that hangs, loses them and holds up nobody.
func TestGuestThatDoesNotRead(t *testing.T) {
	n := newNetwork(t)
	one, two := attach(t, n, "one", 2), attach(t, n, "two", 3)
	attach(t, n, "hangs", 4)
	for range 4 * queued {
		one.send(address(4), strings.Repeat("x", 1500))
	}
	one.send(address(3), "to two")
	two.gets("to two")
}

// A guest that has ended is no trouble before it is detached, and its name and address are free again then.
func TestGuestThatEnds(t *testing.T) {
	n := newNetwork(t)
	one, two := attach(t, n, "one", 2), attach(t, n, "two", 3)
	two.conn.Close()
	for range 100 {
		one.forward(n, address(3), "lost")
	}
	if _, err := n.Attach("two", address(3)); err == nil {
		t.Error("two guests have one name")
	}
	if err := n.Detach("two"); err != nil {
		t.Error(err)
	}
	two = attach(t, n, "two", 3)
	one.forward(n, address(3), "back")
	two.gets("back")
}

func TestRefusals(t *testing.T) {
	n := newNetwork(t)
	attach(t, n, "one", 2)
	for _, tc := range []struct {
		name string
		do   func() error
		want string
	}{
		{"same name", func() error { _, err := n.Attach("one", address(3)); return err }, "one has this name"},
		{"same address", func() error { _, err := n.Attach("two", address(2)); return err }, "one has this name or address"},
		{"host's address", func() error { _, err := n.Attach("two", hostMAC[:]); return err }, "host has this name or address"},
		{"host's name", func() error { _, err := n.Attach(Host, address(3)); return err }, "reserved"},
		{"no name", func() error { _, err := n.Attach("", address(3)); return err }, "reserved"},
		{"multicast", func() error { _, err := n.Attach("two", broadcast); return err }, "not the Ethernet address of one machine"},
		{"short address", func() error { _, err := n.Attach("two", address(3)[:5]); return err }, "not the Ethernet address of one machine"},
		{"detach nobody", func() error { return n.Detach("two") }, `the network has no "two", only host, one`},
		{"detach host", func() error { return n.Detach(Host) }, "detaching host"},
		{"cut nobody", func() error { return n.Cut("two") }, `no "two"`},
		{"cut from nobody", func() error { return n.Cut("one", "two") }, `no "two"`},
		{"large MTU", func() error { _, err := New(Config{Subnet: subnet, MTU: 65536}); return err }, "MTU"},
		{"small MTU", func() error { _, err := New(Config{Subnet: subnet, MTU: 67}); return err }, "MTU"},
		{"no subnet", func() error { _, err := New(Config{}); return err }, "not an IPv4 network"},
		{"IPv6", func() error { _, err := New(Config{Subnet: netip.MustParsePrefix("fd00::/64")}); return err }, "not an IPv4 network"},
		{"full subnet", func() error { _, err := New(Config{Subnet: netip.MustParsePrefix("10.0.0.0/31")}); return err }, "room"},
		{"closed", func() error { n.Close(); _, err := n.Attach("two", address(3)); return err }, "closed"},
	} {
		if err := tc.do(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q in it", tc.name, err, tc.want)
		}
	}
}

// Close ends what the host has open.
func TestClose(t *testing.T) {
	n := newNetwork(t)
	guest(t, n, "one", 2)
	conn, err := n.DialContext(t.Context(), "tcp", "198.18.7.2:7")
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
	n.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlives the network")
	}
	if _, err := n.DialContext(t.Context(), "tcp", "198.18.7.2:7"); err == nil {
		t.Error("a closed network connects")
	}
}
