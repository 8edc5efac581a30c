package podnet

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
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
	return hold(n.router(), func() error {
		if err := raise("lo"); err != nil {
			return err
		}
		services := []string{n.Service()}
		if n.Kind == NAT {
			services = append(services, clusterService)
		}
		for _, text := range services {
			service := netip.MustParseAddr(text)
			if err := address("lo", netip.PrefixFrom(service, service.BitLen())); err != nil {
				return err
			}
		}
		for _, path := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
			// In /proc/sys/net a thread sees the values of its own network.
			if err := os.WriteFile("/proc/sys/net/"+path, []byte("1"), 0); err != nil {
				return fmt.Errorf("making the router forward packets: %w", err)
			}
		}
		if n.Kind == NAT {
			return n.masquerade()
		}
		return nil
	})
}

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

// masquerade gives packets from the private networks to the public pod the router's own address there. The public pod has
// no route to the private networks.
func (n Network) masquerade() error {
	private := netip.MustParsePrefix(privateRange)
	c := &nftables.Conn{}
	table := c.AddTable(&nftables.Table{Name: "podstarter", Family: nftables.TableFamilyIPv4})
	chain := c.AddChain(&nftables.Chain{
		Name: "hide", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	const source, size = 12, 4 // where the source address is in the header of a packet (RFC 791, 3.1)
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: interfaceName(n.link(n.Pods[0]))},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: source, Len: size},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: size, Mask: net.CIDRMask(private.Bits(), 8*size), Xor: binaryutil.NativeEndian.PutUint32(0)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: private.Addr().AsSlice()},
		&expr.Masq{},
	}})
	if err := c.Flush(); err != nil {
		return fmt.Errorf("making the router hide addresses: %w", err)
	}
	return nil
}

// interfaceName is a name as the kernel compares it.
func interfaceName(name string) []byte {
	b := make([]byte, 16) // IFNAMSIZ
	copy(b, name)
	return b
}

// connect makes the link between the router and the network that a file holds, and gives it the addresses of a pod. What
// an earlier network of the pod had goes.
func (n Network) connect(pod, namespace, device string) error {
	own, router, err := n.Addresses(pod)
	if err != nil {
		return err
	}
	file, err := os.Open(namespace)
	if err != nil {
		return fmt.Errorf("opening the pod's network namespace: %w", err)
	}
	defer file.Close()
	name := n.link(pod)
	err = within(n.router(), func() error {
		if err := disconnect(name); err != nil {
			return err
		}
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: device, PeerNamespace: netlink.NsFd(file.Fd())}
		if err := netlink.LinkAdd(veth); err != nil {
			return fmt.Errorf("making the link %s: %w", name, err)
		}
		if err := address(name, router); err != nil {
			return err
		}
		return raise(name)
	})
	if err != nil {
		return err
	}
	return within(namespace, func() error {
		for _, a := range append(n.more(pod), own) {
			if err := address(device, a); err != nil {
				return err
			}
		}
		if err := raise(device); err != nil {
			return err
		}
		if n.Kind == NAT && n.public(pod) {
			return nil
		}
		link, err := netlink.LinkByName(device)
		if err != nil {
			return fmt.Errorf("finding %s: %w", device, err)
		}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: router.Addr().AsSlice()}); err != nil {
			return fmt.Errorf("adding a route by %s: %w", router, err)
		}
		return nil
	})
}

// disconnect removes an interface, if it is there.
func disconnect(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil
	}
	if err := netlink.LinkDel(link); err != nil {
		return fmt.Errorf("removing the link %s: %w", name, err)
	}
	return nil
}

func raise(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("raising %s: %w", name, err)
	}
	return nil
}

func address(name string, prefix netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.AddrAdd(link, &netlink.Addr{
			IPNet: &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())},
			// Nobody else has it: no time is lost to ask (IFA_F_NODAD).
			Flags: nodad(prefix.Addr()),
		})
	}
	if err != nil {
		return fmt.Errorf("giving %s the address %s: %w", name, prefix, err)
	}
	return nil
}

func nodad(a netip.Addr) int {
	const flag = 0x02 // IFA_F_NODAD of linux/if_addr.h
	if a.Is6() {
		return flag
	}
	return 0
}
