package main

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/pool/internal/podnet"
	"podstarter/integration/pool/internal/statedir"
)

func TestCheckNetwork(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings statedir.Settings
		fail     string
	}{
		{"the machine's", statedir.Settings{Network: podnet.Host}, ""},
		{"behind NAT", statedir.Settings{Network: podnet.NAT}, ""},
		{"unknown", statedir.Settings{Network: "wan"}, "network wan is not known here; host, nat, nat6, ipv6, mixed are"},
		{"in a guest", statedir.Settings{Network: podnet.NAT, Guests: 1}, "leave --guest out"},
		{"the host's, in a guest", statedir.Settings{Network: podnet.Host, Guests: 1}, ""},
		{"with pods that fail", statedir.Settings{Network: podnet.IPv6, Faults: 1}, "execution points that fail"},
		{"with Docker", statedir.Settings{Network: podnet.NAT, StockDocker: true}, "with Docker and Apptainer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &pool{settings: tt.settings, progress: newProgress(io.Discard)}
			err := p.checkNetwork()
			if (err == nil) != (tt.fail == "") || err != nil && !strings.Contains(err.Error(), tt.fail) {
				t.Errorf("error %v, want %q", err, tt.fail)
			}
		})
	}
}

// Each network has its own configuration, on both sides.
func TestNetworkConfiguration(t *testing.T) {
	for _, tt := range []struct {
		network, pod string
		want, none   []string
	}{
		{podnet.Host, glideinPod, []string{"NETWORK_INTERFACE = 127.0.0.1\n", "COLLECTOR_HOST = 127.0.0.1:1\n", "ENABLE_IPV6 = false\n", "CCB_ADDRESS =\n"}, []string{"CCB_ADDRESS = "}},
		{podnet.NAT, glideinPod, []string{"NETWORK_INTERFACE = eth0\n", "COLLECTOR_HOST = 198.18.0.2:1\n", "CCB_ADDRESS = $(COLLECTOR_HOST)\n"}, []string{"ENABLE_IPV", "TCP_FORWARDING_HOST"}},
		{podnet.NAT, poolPod, []string{"NETWORK_INTERFACE = eth0\n"}, []string{"ENABLE_IPV", "TCP_FORWARDING_HOST"}},
		{podnet.NAT6, stockPod, []string{"NETWORK_INTERFACE = eth0\n", "COLLECTOR_HOST = [2001:2::2]:1\n", "CCB_ADDRESS = $(COLLECTOR_HOST)\n", "ENABLE_IPV4 = false\n"}, []string{"ENABLE_IPV6"}},
		{podnet.NAT6, poolPod, []string{"COLLECTOR_HOST = [2001:2::2]:1\n", "ENABLE_IPV4 = false\n"}, []string{"ENABLE_IPV6", "TCP_FORWARDING_HOST"}},
		{podnet.IPv6, stockPod, []string{"NETWORK_INTERFACE = eth0\n", "COLLECTOR_HOST = [fd00:87::2]:1\n", "ENABLE_IPV4 = false\n", "CCB_ADDRESS =\n"}, []string{"CCB_ADDRESS = "}},
		{podnet.Mixed, glideinPod, []string{"NETWORK_INTERFACE = eth0\n", "COLLECTOR_HOST = [fd00:87::2]:1\n"}, []string{"ENABLE_IPV"}},
		{podnet.Mixed, poolPod, []string{"NETWORK_INTERFACE = eth0\n"}, []string{"ENABLE_IPV", "TCP_FORWARDING_HOST"}},
	} {
		p := &pool{settings: statedir.Settings{Network: tt.network, Ports: map[string]int{poolPod: 1}}}
		got := p.network(0, tt.pod)
		if tt.pod != poolPod {
			got = p.ownNetwork(0, tt.pod)
		}
		for _, line := range tt.want {
			if !strings.Contains(got, line) {
				t.Errorf("%s in %s: no %q in\n%s", tt.pod, tt.network, line, got)
			}
		}
		for _, word := range tt.none {
			if strings.Contains(got, word) {
				t.Errorf("%s in %s: %q in\n%s", tt.pod, tt.network, word, got)
			}
		}
	}
}

// The submit side has a network of its own there.
func TestSubmitNetwork(t *testing.T) {
	for network, class := range map[string]any{podnet.Host: nil, podnet.NAT: "submit-side", podnet.NAT6: "submit-side", podnet.IPv6: "submit-side", podnet.Mixed: "submit-side"} {
		p := &pool{settings: statedir.Settings{Network: network}}
		spec := map[string]any{}
		p.joinSubmitNetwork(spec)
		if diff := cmp.Diff(class, spec["runtimeClassName"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", network, diff)
		}
	}
}
