package podnet

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// ipam is the part of a configuration about addresses.
type ipam struct {
	Type      string
	Ranges    [][]struct{ Subnet string }
	Addresses []struct{ Address, Gateway string }
	Routes    []struct{ Dst string }
}

func TestConfigurations(t *testing.T) {
	type network struct {
		Masquerades          bool
		Own, Gateways, Reach []string
	}
	private := network{Masquerades: true, Own: []string{"10.88.0.0/24", "fd00:88::/64"}, Reach: []string{"0.0.0.0/0", "::/0"}}
	outside := network{Own: []string{"198.18.0.2/24", "2001:2::2/64"}, Gateways: []string{"198.18.0.1", "2001:2::1"}}
	open := network{Own: []string{"fd00:88::/64"}, Reach: []string{"::/0"}}
	for _, tt := range []struct {
		kind, at       string
		submit, others network
	}{
		{NAT, "198.18.0.2", outside, private},
		{NAT6, "2001:2::2", outside, private},
		{IPv6, "fd00:87::2", network{Own: []string{"fd00:87::2/64"}, Gateways: []string{"fd00:87::1"}, Reach: []string{"::/0"}}, open},
		{Mixed, "fd00:87::2", network{
			Own: []string{"fd00:87::2/64", "198.18.0.2/24"}, Gateways: []string{"fd00:87::1", "198.18.0.1"}, Reach: []string{"::/0"},
		}, open},
	} {
		n := Network{Kind: tt.kind, Dir: "/run/x", Server: 6443, Local: []int{80}}
		if got := n.SubmitSide().String(); got != tt.at {
			t.Errorf("in %s the submit side is at %s, want %s", tt.kind, got, tt.at)
		}
		submit, others, err := n.Configurations()
		must(t, err)
		for i, text := range [][]byte{submit, others} {
			want := []network{tt.submit, tt.others}[i]
			var conf struct{ Plugins []json.RawMessage }
			must(t, json.Unmarshal(text, &conf))
			var bridge struct {
				IPMasq bool
				IPAM   ipam
			}
			var last pluginConfig
			must(t, json.Unmarshal(conf.Plugins[0], &bridge))
			must(t, json.Unmarshal(conf.Plugins[len(conf.Plugins)-1], &last))
			got := network{Masquerades: bridge.IPMasq}
			for _, r := range bridge.IPAM.Ranges {
				got.Own = append(got.Own, r[0].Subnet)
			}
			for _, a := range bridge.IPAM.Addresses {
				got.Own, got.Gateways = append(got.Own, a.Address), append(got.Gateways, a.Gateway)
			}
			for _, r := range bridge.IPAM.Routes {
				got.Reach = append(got.Reach, r.Dst)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, network %d (-want +got):\n%s", tt.kind, i, diff)
			}
			if diff := cmp.Diff(n, last.Network); diff != "" || last.Type != relayPlugin {
				t.Errorf("the last plugin is %s (-want +got):\n%s", last.Type, diff)
			}
		}
	}
}

// The machine's own network stays as it is.
func TestThreadsStayApart(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	before, err := os.Readlink("/proc/thread-self/ns/net")
	must(t, err)
	file := filepath.Join(t.TempDir(), "namespace")
	var inside string
	must(t, hold(file, func() error {
		inside, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	}))
	defer func() { must(t, release(file)) }()
	var s unix.Stat_t
	must(t, unix.Stat(file, &s))
	after, err := os.Readlink("/proc/thread-self/ns/net")
	must(t, err)
	if inside == before || after != before || fmt.Sprintf("net:[%d]", s.Ino) != inside {
		t.Errorf("before %s, inside %s, after %s, held %d", before, inside, after, s.Ino)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
