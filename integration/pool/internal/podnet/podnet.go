// Package podnet gives the pods of a pool networks of their own, all of them apart from the machine's network. Each pod has
// a pair of virtual interfaces; the other ends are in one network namespace, the router. The machine itself has no
// interface there: a relay takes what pods send to the API server and the web server from sockets in their networks to
// those on the machine's loopback.
//
// [Plugin] is the CNI plugin that the container runtime runs for each pod, and [Relay] a daemon.
package podnet

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
)

// Networks of a pool.
const (
	// Host is the machine's own network, for all pods.
	Host = "host"
	// NAT is a network in which the first pod has an address that all can reach, and each other pod is in a private network
	// behind the router, which hides its address. Nothing outside can open a connection to it.
	NAT = "nat"
	// IPv6 is a network in which all pods reach each other, and which has no other addresses than those of IPv6.
	IPv6 = "ipv6"
	// Mixed is that, but the first pod has an address of IPv4 too, which no other can reach.
	Mixed = "mixed"
)

// Kinds are all networks.
var Kinds = []string{Host, NAT, IPv6, Mixed}

// A Network is one that is not the machine's.
type Network struct {
	// Kind is one of [Kinds] except Host.
	Kind string `json:"network"`
	// Dir is where the router and what is known of the pods are, as short a path as a socket's.
	Dir string `json:"dir"`
	// Pods are the names of all that can be in it; the first is the public one. Their places in this list are in their
	// addresses.
	Pods []string `json:"pods"`
	// Server is the port of the API server, which pods reach at [Network.Service].
	Server int `json:"server"`
	// Local are the ports on loopback that each pod has in common with the machine.
	Local []int `json:"local"`
}

// Addresses are those of a pod and of the router's end of its link, with the length of their common prefix.
func (n Network) Addresses(pod string) (own, router netip.Prefix, err error) {
	i := slices.Index(n.Pods, pod)
	if i < 0 || i > maxPods {
		return own, router, fmt.Errorf("the pod %q has no place in the network %s", pod, n.Kind)
	}
	if n.Kind != NAT {
		base := netip.MustParsePrefix(ipv6Range).Addr().As16()
		base[7] = byte(i)
		return last(base[:], 2, 64), last(base[:], 1, 64), nil
	}
	base := []byte{10, 88, byte(i), 0}
	if n.public(pod) {
		base = publicIPv4
	}
	return last(base, 2, 24), last(base, 1, 24), nil
}

// more are the further addresses of a pod.
func (n Network) more(pod string) []netip.Prefix {
	if n.Kind == Mixed && n.public(pod) {
		return []netip.Prefix{last(publicIPv4, 2, 24)}
	}
	return nil
}

// publicIPv4 begins the address of the public pod. It is of the range for benchmarks of network devices (RFC 2544), which
// nobody routes.
var publicIPv4 = []byte{198, 18, 0, 0}

// Ranges of addresses.
const (
	ipv6Range    = "fd00:88::/32"
	privateRange = "10.88.0.0/16"
	maxPods      = 254
)

func last(base []byte, number byte, bits int) netip.Prefix {
	base = slices.Clone(base)
	base[len(base)-1] = number
	addr, _ := netip.AddrFromSlice(base)
	return netip.PrefixFrom(addr, bits)
}

// services are the router's addresses, at which pods reach the API server.
var services = map[string]string{NAT: "198.18.1.1", IPv6: "fd00:88:0:ffff::1", Mixed: "fd00:88:0:ffff::1"}

// clusterService is the address of the API server's own service, which the kubelet tells containers of (with [clusterPort]). In the network with IPv4 alone, pods reach it, as behind a kube-proxy.
const (
	clusterService = "10.0.0.1"
	clusterPort    = 443
)

// Service is the address at which pods reach the API server.
func (n Network) Service() string { return services[n.Kind] }

// Services are the addresses of that kind of all networks.
func Services() []string { return []string{services[NAT], services[IPv6]} }

// public reports whether a pod is the one that all others reach.
func (n Network) public(pod string) bool { return pod == n.Pods[0] }

// router is the file that holds the router's network namespace.
func (n Network) router() string { return filepath.Join(n.Dir, "router-"+n.Kind) }

// link is the name of the router's interface to a pod.
func (n Network) link(pod string) string { return fmt.Sprintf("pod-%d", slices.Index(n.Pods, pod)) }
