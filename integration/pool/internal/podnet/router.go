package podnet

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
)

// MakeRouter makes the router, if there is none, and removes those of other networks.
func (n Network) MakeRouter() error {
	if err := removeRouters(n.Dir, n.Kind); err != nil {
		return err
	}
	if held(n.router()) {
		return nil
	}
	// Whoever had an address had it in an earlier router.
	if err := os.RemoveAll(n.addresses()); err != nil {
		return fmt.Errorf("forgetting addresses: %w", err)
	}
	return hold(n.router(), func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return fmt.Errorf("finding the router's loopback: %w", err)
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return fmt.Errorf("raising the router's loopback: %w", err)
		}
		for _, a := range []netip.Addr{serviceIPv4, serviceIPv6} {
			ip := &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
			if err := netlink.AddrAdd(lo, &netlink.Addr{IPNet: ip, Flags: nodad}); err != nil {
				return fmt.Errorf("giving the router the address %s: %w", a, err)
			}
		}
		return nil
	})
}

// nodad says that an address of IPv6 can be used at once, since nobody else has it (IFA_F_NODAD of linux/if_addr.h).
const nodad = 0x02

// RemoveRouters removes the routers of all networks.
func RemoveRouters(dir string) error { return removeRouters(dir, Host) }

func removeRouters(dir, except string) error {
	for _, kind := range Kinds {
		if kind == except || kind == Host {
			continue
		}
		if err := release(Network{Kind: kind, Dir: dir}.router()); err != nil {
			return err
		}
	}
	return nil
}
