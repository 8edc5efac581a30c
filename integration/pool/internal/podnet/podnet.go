// Package podnet gives the pods of a pool networks of their own, all of them apart from the machine's network. CNI's reference
// plugins make them: bridge, with masquerading, and host-local or static for addresses. What is a node to these is a
// network namespace of ours, the router; the machine itself has no interface there. A relay takes what pods send to the API
// server and the web server from sockets in their networks to those on the machine's loopback.
//
// [Plugin] is the last CNI plugin of each pod, which tells the relay of it, and [Relay] a daemon.
package podnet

import (
	"net/netip"
	"path/filepath"
)

// Networks of a pool.
const (
	// Host is the machine's own network, for all pods.
	Host = "host"
	// NAT is a network in which pods have private addresses of IPv4 and IPv6, which the router hides. Nothing outside can open a
	// connection to them. The submit side is outside, and is known by its address of IPv4.
	NAT = "nat"
	// NAT6 is that, but the submit side is known by its address of IPv6, and HTCondor uses no IPv4.
	NAT6 = "nat6"
	// IPv6 is a network in which all pods reach each other, and which has no other addresses than those of IPv6.
	IPv6 = "ipv6"
	// Mixed is that, but the submit side has an address of IPv4 too, which no other can reach.
	Mixed = "mixed"
)

// Kinds are all networks.
var Kinds = []string{Host, NAT, NAT6, IPv6, Mixed}

// A Network is one that is not the machine's.
type Network struct {
	// Kind is one of [Kinds] except Host.
	Kind string `json:"network"`
	// Dir is where the router and what is known of the pods are, as short a path as a socket's.
	Dir string `json:"dir"`
	// Server is the port of the API server, which pods reach at [Network.Service].
	Server int `json:"server"`
	// Local are the ports on loopback that each pod has in common with the machine.
	Local []int `json:"local"`
}

// Private reports whether pods are behind NAT, where nobody reaches them.
func (n Network) Private() bool { return n.Kind == NAT || n.Kind == NAT6 }

// SubmitSide is the address at which all pods reach the submit side.
func (n Network) SubmitSide() netip.Addr {
	switch n.Kind {
	case NAT:
		return submitIPv4.Addr()
	case NAT6:
		return submitPublic.Addr()
	}
	return submitIPv6.Addr()
}

// Addresses of pods.
var (
	podsIPv4 = netip.MustParsePrefix("10.88.0.0/24")
	podsIPv6 = netip.MustParsePrefix("fd00:88::/64")
)

// Addresses of the submit side, each with the length of its network's prefix. Behind NAT it has public ones, of the ranges for
// benchmarks of network devices (RFC 2544, RFC 5180), which nobody routes. A published port would not do: condor_ssh_to_job and the like
// listen on ports of their own, to which the broker has starters connect.
var (
	submitIPv4   = netip.MustParsePrefix("198.18.0.2/24")
	submitPublic = netip.MustParsePrefix("2001:2::2/64")
	submitIPv6   = netip.MustParsePrefix("fd00:87::2/64")
)

// The router's addresses at which pods reach the API server. One of IPv4 is that of the API server's own service, which the kubelet
// tells containers of, as behind a kube-proxy.
var (
	serviceIPv4 = netip.MustParseAddr("10.0.0.1")
	serviceIPv6 = netip.MustParseAddr("fd00:88:0:ffff::1")
)

// ServicePort is the port there.
const ServicePort = 443

// Service is the address at which pods reach the API server, at [ServicePort].
func (n Network) Service() netip.Addr {
	if n.Private() {
		return serviceIPv4
	}
	return serviceIPv6
}

// Services are the addresses of that kind of all networks.
func Services() []string { return []string{serviceIPv4.String(), serviceIPv6.String()} }

// router is the file that holds the router's network namespace.
func (n Network) router() string { return filepath.Join(n.Dir, "router-"+n.Kind) }
