// Package vnet is an Ethernet between guests and this process, which needs no rights: a switch in user space to which each
// guest has a socket for its cable. A TCP stack of its own (gvisor.dev/gvisor) is the host on that network, so that this
// process can connect to the guests. Nothing leads out of it.
package vnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
)

// Host is the name of this process on the network.
const Host = "host"

const (
	ethernetHeader = 14 // bytes: destination, source, type (IEEE 802.3)
	vlanTag        = 4  // bytes: an 802.1Q tag, which the MTU does not count
	macSize        = 6
)

// Config says what the network is like.
type Config struct {
	// Subnet is the IPv4 network of the guests. Its first address is that of the host.
	Subnet netip.Prefix
	// MTU is how many bytes a frame may hold behind its Ethernet header. 0 means 1500.
	MTU int
}

// A Network is one switch with what is attached to it. Its methods may be called at any time from any goroutine.
type Network struct {
	mtu  int
	host *host

	mu    sync.RWMutex
	ports map[mac]*port
	// cut holds the pairs whose frames are dropped, each in both orders. everyone stands for all guests.
	cut map[[2]string]bool
}

// everyone cannot be the name of a guest.
const everyone = ""

type mac [macSize]byte

// New makes a network that only the host is attached to.
func New(cfg Config) (*Network, error) {
	if cfg.MTU == 0 {
		cfg.MTU = 1500
	}
	// RFC 791 requires 68; more than 64 KiB is not an IPv4 packet.
	if cfg.MTU < 68 || cfg.MTU > 65535 {
		return nil, fmt.Errorf("making a network: the MTU %d is not between 68 and 65535", cfg.MTU)
	}
	if !cfg.Subnet.IsValid() || !cfg.Subnet.Addr().Is4() || cfg.Subnet.Bits() > 30 {
		return nil, fmt.Errorf("making a network: %v is not an IPv4 network with room for guests", cfg.Subnet)
	}
	n := &Network{mtu: cfg.MTU, ports: map[mac]*port{}, cut: map[[2]string]bool{}}
	subnet := cfg.Subnet.Masked()
	var err error
	if n.host, err = newHost(netip.PrefixFrom(subnet.Addr().Next(), subnet.Bits()), hostMAC, cfg.MTU); err != nil {
		return nil, fmt.Errorf("making a network: %w", err)
	}
	p := newPort(Host)
	n.ports[hostMAC] = p
	go p.run(n.host.receive)
	go n.host.send(n.forwardFrom(p))
	return n, nil
}

// HostAddress is the address of the host on the network.
func (n *Network) HostAddress() netip.Addr { return n.host.address }

// Attach gives a guest a place on the network. It returns the guest's end of a datagram socketpair, on which each datagram
// is one Ethernet frame; User-Mode Linux takes its descriptor as vec0:transport=fd,fd=N,mac=…. The caller closes the file
// once the guest has it.
//
// The guest stays attached until Detach, whether it lives or not. A guest that does not read loses frames; it does not
// hold up others.
func (n *Network) Attach(name string, address net.HardwareAddr) (*os.File, error) {
	fail := func(err error) (*os.File, error) {
		return nil, fmt.Errorf("attaching %s (%s) to the network: %w", name, address, err)
	}
	if name == everyone || name == Host {
		return fail(errors.New("the name is reserved"))
	}
	if len(address) != macSize || address[0]&1 != 0 {
		return fail(errors.New("this is not the Ethernet address of one machine"))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed() {
		return fail(net.ErrClosed)
	}
	for a, p := range n.ports {
		if p.name == name || a == mac(address) {
			return fail(fmt.Errorf("%s has this name or address", p.name))
		}
	}
	socket, guest, err := socketpair(name)
	if err != nil {
		return fail(err)
	}
	p := newPort(name)
	p.socket = socket
	n.ports[mac(address)] = p
	go p.run(p.write)
	go p.read(n.mtu, n.forwardFrom(p))
	return guest, nil
}

// Detach takes a guest off the network, and ends the host's connections to it. What it is cut off from remains, for the case that it comes back.
func (n *Network) Detach(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for address, p := range n.ports {
		if p.name == name && name != Host {
			delete(n.ports, address)
			p.close()
			n.host.forget(address)
			return nil
		}
	}
	return fmt.Errorf("detaching %s from the network: %w", name, n.unknown(name))
}

// Cut drops all frames between a guest and others from now on, in both directions. Without others, these are all other
// guests, also those that are attached later, but not the host, which the channels to the guests need.
func (n *Network) Cut(name string, others ...string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range append([]string{name}, others...) {
		if !n.has(one) {
			return fmt.Errorf("cutting %s off: %w", name, n.unknown(one))
		}
	}
	if len(others) == 0 {
		others = []string{everyone}
	}
	for _, other := range others {
		n.cut[[2]string{name, other}] = true
		n.cut[[2]string{other, name}] = true
	}
	return nil
}

// Heal ends everything that Cut began.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cut)
}

func (n *Network) isCut(a, b string) bool {
	if n.cut[[2]string{a, b}] {
		return true
	}
	return a != Host && b != Host && (n.cut[[2]string{a, everyone}] || n.cut[[2]string{b, everyone}])
}

func (n *Network) has(name string) bool {
	for _, p := range n.ports {
		if p.name == name {
			return true
		}
	}
	return false
}

func (n *Network) unknown(name string) error {
	var names []string
	for _, p := range n.ports {
		names = append(names, p.name)
	}
	slices.Sort(names)
	return fmt.Errorf("the network has no %q, only %s", name, strings.Join(names, ", "))
}

// DialContext connects to a port of a guest, such as "198.18.0.2:22"; network is "tcp" or "tcp4". It waits up to
// three seconds for a guest that has not booted yet. The connection ends when the guest does not answer for two and a half
// minutes.
func (n *Network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
	case network != "tcp" && network != "tcp4":
		err = net.UnknownNetworkError(network)
	case !n.host.subnet.Contains(to.Addr()):
		err = fmt.Errorf("the network is %s", n.host.subnet)
	default:
		var conn *connection
		if conn, err = n.host.dial(ctx, to); err == nil {
			err = n.own(conn, to.Addr())
		}
		if err == nil {
			return conn, nil
		}
	}
	return nil, fmt.Errorf("connecting to the guest at %s: %w", address, err)
}

// own makes a connection of the host end with the port of its guest.
func (n *Network) own(conn *connection, address netip.Addr) error {
	mac, known := n.host.neighbour(address)
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.ports[mac]
	if !known || p == nil {
		conn.abort()
		return errors.New("the guest was detached")
	}
	p.connections[conn] = true
	conn.release = func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(p.connections, conn)
	}
	return nil
}

// Close detaches everything and ends the host's connections.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed() {
		return nil
	}
	for address, p := range n.ports {
		delete(n.ports, address)
		p.close()
	}
	n.host.close()
	return nil
}

func (n *Network) closed() bool { return len(n.ports) == 0 }

// forwardFrom returns what is done with each frame that p sends. A frame is never changed, so all receivers share it.
func (n *Network) forwardFrom(p *port) func(frame []byte) {
	return func(frame []byte) {
		if len(frame) < ethernetHeader {
			return
		}
		to := mac(frame[:macSize])
		n.mu.RLock()
		defer n.mu.RUnlock()
		if to[0]&1 == 0 { // one machine; others are broadcast or multicast
			if other := n.ports[to]; other != nil && other != p && !n.isCut(p.name, other.name) {
				other.deliver(frame)
			}
			return
		}
		for _, other := range n.ports {
			if other != p && !n.isCut(p.name, other.name) {
				other.deliver(frame)
			}
		}
	}
}
