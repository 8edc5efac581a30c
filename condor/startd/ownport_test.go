package startd

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"podstarter/condor/config"
	"podstarter/internal/cedar"
)

// bound is a listener at an address, of which nothing is accepted.
type bound struct{ at netip.AddrPort }

func (b bound) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (b bound) Close() error              { return nil }
func (b bound) Addr() net.Addr            { return net.TCPAddrFromAddrPort(b.at) }

// TestPortAddress: what a starter without a shared port tells, as the stock starter in the same network (integration/addresses).
func TestPortAddress(t *testing.T) {
	const (
		any4, any6 = "0.0.0.0:7000", "[::]:7000"
		parent     = "<192.0.2.5:9000?addrs=192.0.2.5-9000+[2001-db8--5]-9000&alias=a>"
		private    = "<10.0.0.5:9000?addrs=192.0.2.5-9000+[2001-db8--5]-9000>"
	)
	detected := func(more ...string) map[string]string {
		knobs := map[string]string{"IPV4_ADDRESS": "192.0.2.5", "IPV6_ADDRESS": "2001:db8::5", "HOST_ALIAS": "a", "PRIVATE_NETWORK_NAME": "inside"}
		for i := 0; i < len(more); i += 2 {
			knobs[more[i]] = more[i+1]
		}
		return knobs
	}
	for name, tt := range map[string]struct {
		parent    string
		listeners []string
		knobs     map[string]string
		want      string
	}{
		"both protocols":    {parent, []string{any4, any6}, detected(), "<192.0.2.5:7000?addrs=192.0.2.5-7000+[2001-db8--5]-7000&alias=a&noUDP>"},
		"IPv6 first":        {parent, []string{any4, any6}, detected("ADVERTISE_IPV4_FIRST", "False"), "<192.0.2.5:7000?addrs=[2001-db8--5]-7000+192.0.2.5-7000&alias=a&noUDP>"},
		"one protocol":      {parent, []string{any6}, detected(), "<[2001:db8::5]:7000?addrs=[2001-db8--5]-7000&alias=a&noUDP>"},
		"bound":             {parent, []string{"192.0.2.77:7000"}, detected(), "<192.0.2.77:7000?addrs=192.0.2.77-7000&alias=a&noUDP>"},
		"a private network": {private, []string{any4, any6}, detected("PRIVATE_NETWORK_INTERFACE", "eth*"), "<192.0.2.5:7000?PrivAddr=%3c10.0.0.5:7000%3e&PrivNet=inside&addrs=192.0.2.5-7000+[2001-db8--5]-7000&alias=a&noUDP>"},
		"the same":          {parent, []string{any4}, detected("PRIVATE_NETWORK_INTERFACE", "eth*"), "<192.0.2.5:7000?addrs=192.0.2.5-7000&alias=a&noUDP>"},
		"the same, IPv6 first": {parent, []string{any4, any6}, detected("PRIVATE_NETWORK_INTERFACE", "eth*", "ADVERTISE_IPV4_FIRST", "False"),
			"<192.0.2.5:7000?addrs=[2001-db8--5]-7000+192.0.2.5-7000&alias=a&noUDP>"},
		"forwarded from outside the private network": {parent, []string{any4}, detected("PRIVATE_NETWORK_INTERFACE", "eth*", "TCP_FORWARDING_HOST", "198.51.100.1"),
			"<198.51.100.1:7000?PrivAddr=%3c192.0.2.5:7000%3e&PrivNet=inside&addrs=198.51.100.1-7000&alias=a&noUDP>"},
		"forwarded by the other protocol": {parent, []string{any4, any6}, detected("PRIVATE_NETWORK_INTERFACE", "eth*", "TCP_FORWARDING_HOST", "2001:db8::99"),
			"<192.0.2.5:7000?PrivAddr=%3c192.0.2.5:7000%3e&PrivNet=inside&addrs=192.0.2.5-7000+[2001-db8--99]-7000&alias=a&noUDP>"},
		"two ports, one private": {private, []string{any4, "[::]:7001"}, detected("PRIVATE_NETWORK_INTERFACE", "eth*", "ADVERTISE_IPV4_FIRST", "False"),
			"<192.0.2.5:7000?PrivAddr=%3c10.0.0.5:7000%3e&PrivNet=inside&addrs=[2001-db8--5]-7001+192.0.2.5-7000&alias=a&noUDP>"},
		"forwarded":         {parent, []string{any4, any6}, detected("TCP_FORWARDING_HOST", "198.51.100.1"), "<198.51.100.1:7000?addrs=198.51.100.1-7000+[2001-db8--5]-7000&alias=a&noUDP>"},
		"forwarded by IPv6": {parent, []string{any6}, detected("TCP_FORWARDING_HOST", "2001:db8::99"), "<[2001:db8::99]:7000?addrs=[2001-db8--99]-7000&alias=a&noUDP>"},
		"no tool":           {parent, []string{any4, any6}, nil, "<192.0.2.5:7000?addrs=192.0.2.5-7000+[2001-db8--5]-7000&alias=a&noUDP>"},
		"an old parent":     {"<192.0.2.5:9000>", []string{any4}, nil, "<192.0.2.5:7000?addrs=192.0.2.5-7000&noUDP>"},
		"nothing known":     {"<192.0.2.5:9000>", []string{any6}, nil, "<192.0.2.5:7000?noUDP>"},
	} {
		t.Run(name, func(t *testing.T) {
			from, err := cedar.ParseSinful(tt.parent)
			if err != nil {
				t.Fatal(err)
			}
			h := &Inheritance{Parent: from, Listener: bound{netip.MustParseAddrPort(tt.listeners[0])}}
			if len(tt.listeners) > 1 {
				h.Second = bound{netip.MustParseAddrPort(tt.listeners[1])}
			}
			if got := h.OwnAddress(config.FromMap(tt.knobs)).String(); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestInheritBothProtocols: a startd without a shared port hands down a port for each protocol; both are kept, and further ones closed.
func TestInheritBothProtocols(t *testing.T) {
	item := func() (string, *net.TCPListener) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("1 %d*2*0*0*0*0***1**0*0*0*0*0*0*0*", hand(t, l.(*net.TCPListener))), l.(*net.TCPListener)
	}
	one, first := item()
	two, second := item()
	three, third := item()
	h, err := InheritFromSchedd([]string{"CONDOR_INHERIT=17 <127.0.0.1:9618> 0 " + one + " " + two + " " + three + " 0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	if h.Listener.Addr().String() != first.Addr().String() || h.Second == nil || h.Second.Addr().String() != second.Addr().String() {
		t.Errorf("listeners %v and %v, want %s and %s", h.Listener, h.Second, first.Addr(), second.Addr())
	}
	for _, l := range []*net.TCPListener{first, second, third} {
		l.Close() // this test's own descriptor
	}
	if c, err := net.Dial("tcp", third.Addr().String()); err == nil {
		c.Close()
		t.Error("the third port still listens")
	}
	for _, l := range []net.Listener{h.Listener, h.Second} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			continue
		}
		c.Close()
	}
}
