package cedar

import (
	"net"
	"strings"
	"testing"
	"time"
)

// TestDialLeavesFrom: connections leave from the address that BIND_ALL_INTERFACES = False and NETWORK_INTERFACE give.
func TestDialLeavesFrom(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	to := Sinful{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}
	for name, tt := range map[string]struct {
		network    Network
		from, fail string
	}{
		"any":                    {Network{}, "127.0.0.1", ""},
		"one":                    {Network{FromIPv4: "127.0.0.7"}, "127.0.0.7", ""},
		"of the other protocol":  {Network{FromIPv6: "2001:db8::1"}, "127.0.0.1", ""},
		"none of this machine's": {Network{FromIPv4: "192.0.2.200"}, "", "leave from the address 192.0.2.200"},
		"of no protocol":         {Network{FromIPv4: "here"}, "", "BIND_ALL_INTERFACES"},
		"of a wrong protocol":    {Network{FromIPv4: "2001:db8::1"}, "", "not of IPv4"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := (&Client{Network: tt.network}).Dial(t.Context(), to, time.Minute)
			if tt.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Errorf("error %v, want one with %q", err, tt.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if got := conn.LocalAddr().(*net.TCPAddr).IP.String(); got != tt.from {
				t.Errorf("it left from %s, want %s", got, tt.from)
			}
		})
	}
}
