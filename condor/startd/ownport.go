package startd

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"podstarter/internal/cedar"
)

// portAddress returns the address of a starter with a port of its own for each protocol: that of each, and the one in
// the private network (daemon_core.cpp:InfoCommandSinfulStringMyself). A port that listens at all addresses has the
// machine's, which HTCondor's tools found, or else the startd's.
func (h *Inheritance) portAddress(k Knobs) string {
	s := cedar.Sinful{Host: h.Parent.Host, Params: map[string]string{"noUDP": ""}}
	alias, ok := k.Lookup("HOST_ALIAS")
	if !ok {
		alias = h.Parent.Alias()
	}
	if alias != "" {
		s.Params["alias"] = alias
	}
	var all []netip.AddrPort
	for _, l := range []net.Listener{h.Listener, h.Second} {
		if l == nil {
			continue
		}
		a, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			continue
		}
		if s.Port == 0 {
			s.Port = a.Port
		}
		if host := h.publicHost(a.AddrPort().Addr().Unmap(), k); host.IsValid() {
			all = append(all, netip.AddrPortFrom(host, uint16(a.Port)))
		}
	}
	if len(all) == 0 {
		return s.String()
	}
	if len(all) > 1 && all[0].Addr().Is6() != isFalse(k, "ADVERTISE_IPV4_FIRST") {
		all[0], all[1] = all[1], all[0]
	}
	forwarded := forwarding(k)
	items := make([]string, len(all))
	for i, a := range all {
		if forwarded.IsValid() && forwarded.Is4() == a.Addr().Is4() {
			a = netip.AddrPortFrom(forwarded, a.Port())
		}
		if a.Addr().Is4() || i == 0 { // old peers read only this one
			s.Host, s.Port = a.Addr().String(), int(a.Port())
		}
		items[i] = listItem(a)
	}
	s.Params["addrs"] = strings.Join(items, "+")
	public := s.Host
	if forwarded.IsValid() {
		public = forwarded.String()
	}
	name, inNetwork := k.Lookup("PRIVATE_NETWORK_NAME")
	if _, ok := k.Lookup("PRIVATE_NETWORK_INTERFACE"); ok && inNetwork && h.Parent.Host != public {
		// The startd hands down its own private address.
		private := cedar.Sinful{Host: h.Parent.Host, Port: s.Port}
		for _, a := range all {
			if a.Addr().Is6() == strings.Contains(private.Host, ":") {
				private.Port = int(a.Port())
			}
		}
		s.Params["PrivAddr"] = private.String()
		s.Params["PrivNet"] = name
	}
	return s.String()
}

// publicHost is the address at which others find a port; bound is where it listens.
func (h *Inheritance) publicHost(bound netip.Addr, k Knobs) netip.Addr {
	if !bound.IsUnspecified() {
		return bound
	}
	knob := "IPV4_ADDRESS"
	if bound.Is6() {
		knob = "IPV6_ADDRESS"
	}
	if text, ok := k.Lookup(knob); ok {
		if a, err := netip.ParseAddr(text); err == nil && a.Is4() == bound.Is4() {
			return a
		}
	}
	for _, a := range h.Parent.Addresses() {
		if a.Addr().Is4() == bound.Is4() {
			return a.Addr()
		}
	}
	if a, err := netip.ParseAddr(h.Parent.Host); err == nil && a.Is4() == bound.Is4() {
		return a
	}
	return netip.Addr{}
}

// listItem writes an address as the list of a daemon's addresses has it, in which a dash stands for a colon.
func listItem(a netip.AddrPort) string {
	host := a.Addr().String()
	if a.Addr().Is6() {
		host = "[" + strings.ReplaceAll(host, ":", "-") + "]"
	}
	return host + "-" + strconv.Itoa(int(a.Port()))
}

// lookupPatience is how long the name in TCP_FORWARDING_HOST is looked up.
const lookupPatience = 10 * time.Second

// forwarding is the address of the machine that passes connections on (TCP_FORWARDING_HOST), not valid if there is none.
func forwarding(k Knobs) netip.Addr {
	text, ok := k.Lookup("TCP_FORWARDING_HOST")
	if !ok {
		return netip.Addr{}
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return a.Unmap()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupPatience)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", text)
	if err != nil || len(found) == 0 {
		return netip.Addr{} // as the stock starter, which goes on without it
	}
	return found[0].Unmap()
}
