package cluster

import (
	"context"
	"fmt"
	"net"
	"strings"

	"podstarter/integration/pool/internal/tool"
)

// linkAddress is what a machine without any address of its own gets: from the range for benchmarks of network devices
// (RFC 2544), which nobody routes.
const linkAddress = "198.18.77.1"

// NodeAddress returns an IPv4 address of the machine that is not loopback; the kubelet refuses to register with one that
// is. ok is false if there is none.
func NodeAddress() (addr string, ok bool, err error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", false, fmt.Errorf("listing the machine's addresses: %w", err)
	}
	for _, a := range addrs {
		if n, isNet := a.(*net.IPNet); isNet && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String(), true, nil
		}
	}
	return "", false, nil
}

// HasAddress says whether addr is one of the machine's.
func HasAddress(addr string) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if n, isNet := a.(*net.IPNet); isNet && n.IP.String() == addr {
			return true
		}
	}
	return false
}

// MakeLink makes a pair of virtual interfaces called name and name+"p", and gives the first an address, which it returns.
func MakeLink(ctx context.Context, name string) (string, error) {
	for _, args := range []string{
		"link add " + name + " type veth peer name " + name + "p",
		"addr add " + linkAddress + "/32 dev " + name,
		"link set " + name + " up",
	} {
		err := tool.Run(ctx, tool.Command{Args: append([]string{"ip"}, strings.Fields(args)...)})
		if err != nil && !strings.Contains(err.Error(), "exists") {
			return "", fmt.Errorf("making a network interface: %w", err)
		}
	}
	return linkAddress, nil
}

// RemoveLink removes the interfaces that MakeLink made.
func RemoveLink(ctx context.Context, name string) error {
	if _, err := net.InterfaceByName(name); err != nil {
		return nil
	}
	if err := tool.Run(ctx, tool.Command{Args: []string{"ip", "link", "del", name}}); err != nil {
		return fmt.Errorf("removing the network interface %s: %w", name, err)
	}
	return nil
}
