package main

import (
	"net"
	"net/netip"
	"sync"
)

// shares accepts so many connections of each peer at a time that none keeps the others out.
// More of the same peer are closed at once.
type shares struct {
	net.Listener
	each int
	peer func(net.Conn) string

	mu   sync.Mutex
	open map[string]int
}

func newShares(l net.Listener, each int, peer func(net.Conn) string) *shares {
	return &shares{Listener: l, each: each, peer: peer, open: make(map[string]int)}
}

// Accept implements net.Listener.
func (s *shares) Accept() (net.Conn, error) {
	for {
		conn, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := s.peer(conn)
		if s.take(peer) {
			return &share{Conn: conn, back: sync.OnceFunc(func() { s.giveBack(peer) })}, nil
		}
		_ = conn.Close()
	}
}

func (s *shares) take(peer string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[peer] >= s.each {
		return false
	}
	s.open[peer]++
	return true
}

func (s *shares) giveBack(peer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[peer]--; s.open[peer] <= 0 {
		delete(s.open, peer)
	}
}

// share is a connection that counts until it is closed.
type share struct {
	net.Conn
	back func()
}

// Close implements net.Conn.
func (c *share) Close() error {
	defer c.back()
	return c.Conn.Close()
}

// thisPod is all that connects from where this program runs, jobs among it, whatever address of
// its own it chooses.
const thisPod = "this pod"

// peerOf is the address from which a connection comes; of IPv6 the network, which one peer
// may have for itself.
func peerOf(conn net.Conn) string {
	remote, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	from := remote.Addr().Unmap().WithZone("")
	if local, err := netip.ParseAddrPort(conn.LocalAddr().String()); from.IsLoopback() || err == nil && local.Addr().Unmap().WithZone("") == from {
		return thisPod
	}
	if from.Is6() {
		if network, err := from.Prefix(64); err == nil {
			return network.String()
		}
	}
	return from.String()
}
