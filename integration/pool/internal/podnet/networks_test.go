package podnet_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	current "github.com/containernetworking/cni/pkg/types/100"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/debian"
	"podstarter/integration/pool/internal/podnet"
)

// TestMain runs the plugin in place of the tests if the runtime's part in them asks for it.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == podnet.Verb {
		podnet.Plugin()
		return
	}
	os.Exit(m.Run())
}

// port is the one at which pods listen.
const port = 9618

// site is a network with its relay, and a container runtime's part in it.
type site struct {
	podnet.Network
	t   *testing.T
	cni *libcni.CNIConfig
	bin string
	// lists are the configurations of networks, by their names; pods the names of files with namespaces.
	lists map[string]*libcni.NetworkConfigList
}

// newSite makes a network; server is the port of an API server.
func newSite(t *testing.T, kind string, server int) *site {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("the firewall's program comes from Debian's packages, and this machine has no apt-get")
	}
	programs := build(t)
	s := &site{t: t, bin: filepath.Join(t.TempDir(), "bin"), Network: podnet.Network{Kind: kind, Dir: t.TempDir(), Server: server, Local: []int{server}}}
	s.cni = libcni.NewCNIConfigWithCacheDir([]string{s.bin}, t.TempDir(), nil)
	must(t, s.WritePlugins(s.bin, programs))
	submit, others, err := s.Configurations()
	must(t, err)
	s.lists = map[string]*libcni.NetworkConfigList{}
	for _, text := range [][]byte{submit, others} {
		list, err := libcni.ConfListFromBytes(text)
		must(t, err)
		s.lists[list.Name] = list
	}
	must(t, s.MakeRouter())
	t.Cleanup(func() { must(t, podnet.RemoveRouters(s.Dir)) })
	must(t, s.MakeRouter()) // once more
	args, err := s.RelayArguments()
	must(t, err)
	relay := make(chan error, 1)
	go func() { relay <- podnet.Relay(args[1:]) }()
	for deadline := time.Now().Add(20 * time.Second); ; {
		conn, err := net.Dial("unix", filepath.Join(s.Dir, "relay.sock"))
		if err == nil {
			conn.Close()
			return s
		}
		select {
		case err := <-relay:
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond): // until it listens
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// build gets the programs of which the plugins are made.
func build(t *testing.T) podnet.Programs {
	t.Helper()
	store, err := cache.User()
	must(t, err)
	ctx := t.Context()
	if _, err := debian.Install(ctx, t.Output(), false); err != nil {
		t.Fatal(err)
	}
	plugins, err := cluster.NetworkPlugins(filepath.Join("..", "..", "..", "components")).Build(ctx, store, t.Output())
	must(t, err)
	nft, err := cluster.NFT(ctx, store, t.Output())
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	return podnet.Programs{Plugins: plugins, NFT: nft, Pool: self}
}

// runtimeConf is what a runtime says of a pod.
func (s *site) runtimeConf(id string) *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: id, NetNS: s.namespace(id), IfName: "eth0"}
}
func (s *site) namespace(id string) string { return filepath.Join(s.Dir, id) }

// add makes a pod in a network and returns its addresses.
func (s *site) add(network, id string) []netip.Addr {
	s.t.Helper()
	must(s.t, podnet.Hold(s.namespace(id), func() error { return nil }))
	s.t.Cleanup(func() { must(s.t, podnet.Release(s.namespace(id))) })
	loopback := &libcni.NetworkConfigList{Name: "lo", CNIVersion: "1.0.0"}
	plugin, err := libcni.NetworkPluginConfFromBytes([]byte(`{"cniVersion": "1.0.0", "name": "lo", "type": "loopback"}`))
	must(s.t, err)
	loopback.Plugins = []*libcni.NetworkConfig{plugin}
	_, err = s.cni.AddNetworkList(s.t.Context(), loopback, &libcni.RuntimeConf{ContainerID: id, NetNS: s.namespace(id), IfName: "lo"})
	must(s.t, err)
	made, err := s.cni.AddNetworkList(s.t.Context(), s.lists[network], s.runtimeConf(id))
	must(s.t, err)
	result, err := current.NewResultFromResult(made)
	must(s.t, err)
	var all []netip.Addr
	for _, ip := range result.IPs {
		a, _ := netip.AddrFromSlice(ip.Address.IP)
		all = append(all, a.Unmap())
	}
	return all
}

func (s *site) del(network, id string) error {
	return s.cni.DelNetworkList(s.t.Context(), s.lists[network], s.runtimeConf(id))
}

// call connects a pod to an address of another, and returns how the caller is seen.
func (s *site) call(from, to string, at netip.AddrPort) (netip.Addr, error) {
	var l net.Listener
	if err := podnet.Within(s.namespace(to), func() (err error) {
		l, err = net.Listen("tcp", at.String())
		return err
	}); err != nil {
		return netip.Addr{}, err
	}
	defer l.Close()
	var conn net.Conn
	if err := podnet.Within(s.namespace(from), func() (err error) {
		conn, err = net.DialTimeout("tcp", at.String(), 5*time.Second)
		return err
	}); err != nil {
		return netip.Addr{}, err
	}
	defer conn.Close()
	seen, err := l.Accept()
	if err != nil {
		return netip.Addr{}, err
	}
	defer seen.Close()
	return netip.MustParseAddrPort(seen.RemoteAddr().String()).Addr().Unmap(), nil
}

// TestNetworks makes the networks of a submit side and of two pods, and looks who reaches whom.
func TestNetworks(t *testing.T) {
	for _, tt := range []struct {
		kind  string
		ap    string   // the submit side's addresses
		ep    string   // the first pod's
		calls string   // by which address the submit side sees it
		self  string   // by which it sees itself, at the address that all know
		out   []string // why it does not reach the pod, at each of the pod's addresses; empty if it does
	}{
		{podnet.NAT, "[198.18.0.2 2001:2::2]", "[10.88.0.2 fd00:88::2]", "198.18.0.1", "198.18.0.2", []string{"unreachable", "unreachable"}},
		{podnet.NAT6, "[198.18.0.2 2001:2::2]", "[10.88.0.2 fd00:88::2]", "2001:2::1", "2001:2::2", []string{"unreachable", "unreachable"}},
		{podnet.IPv6, "[fd00:87::2]", "[fd00:88::2]", "fd00:88::2", "fd00:87::2", []string{""}},
		{podnet.Mixed, "[fd00:87::2 198.18.0.2]", "[fd00:88::2]", "fd00:88::2", "fd00:87::2", []string{""}},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			s := newSite(t, tt.kind, 1)
			ap, ep := s.add(podnet.SubmitSide, "ap"), s.add("pods", "ep")
			if fmt.Sprint(ap) != tt.ap || fmt.Sprint(ep) != tt.ep {
				t.Errorf("the submit side has %v, want %s; the pod %v, want %s", ap, tt.ap, ep, tt.ep)
			}
			known := netip.AddrPortFrom(s.SubmitSide(), port)
			if seen, err := s.call("ep", "ap", known); err != nil || seen.String() != tt.calls {
				t.Errorf("the pod calls the submit side as %s, %v; want %s", seen, err, tt.calls)
			}
			if seen, err := s.call("ap", "ap", known); err != nil || seen.String() != tt.self {
				t.Errorf("the submit side calls itself as %s, %v; want %s", seen, err, tt.self)
			}
			for i, a := range ep {
				at := netip.AddrPortFrom(a, port)
				if _, err := s.call("ap", "ep", at); (err == nil) != (tt.out[i] == "") || err != nil && !strings.Contains(err.Error(), tt.out[i]) {
					t.Errorf("the submit side calls the pod at %s: %v; want %q", a, err, tt.out[i])
				}
			}
			// Another pod in the place of the first is behind the same address.
			must(t, s.del("pods", "ep"))
			s.add("pods", "another")
			if seen, err := s.call("another", "ap", known); err != nil || s.Private() && seen.String() != tt.calls {
				t.Errorf("another pod calls the submit side as %s, %v", seen, err)
			}
			must(t, s.del(podnet.SubmitSide, "ap"))
			s.add(podnet.SubmitSide, "ap-again")
			if _, err := s.call("another", "ap-again", known); err != nil {
				t.Errorf("the submit side that was made anew: %v", err)
			}
		})
	}
}

// TestRemoval: a pod's network can be removed more than once, and when the pod's namespace is gone, the relay, the router, or the plugins.
func TestRemoval(t *testing.T) {
	for _, tt := range []struct {
		name string
		gone func(t *testing.T, s *site)
	}{
		{"once more", func(t *testing.T, s *site) { must(t, s.del("pods", "pod")) }},
		{"no namespace", func(t *testing.T, s *site) { must(t, podnet.Release(s.namespace("pod"))) }},
		{"no router", func(t *testing.T, s *site) { must(t, podnet.RemoveRouters(s.Dir)) }},
		{"no relay", func(t *testing.T, s *site) { must(t, os.Remove(filepath.Join(s.Dir, "relay.sock"))) }},
		{"nothing left of the network", func(t *testing.T, s *site) {
			must(t, podnet.RemoveRouters(s.Dir))
			must(t, os.RemoveAll(filepath.Join(s.Dir, "pods")))
			must(t, os.RemoveAll(filepath.Join(s.Dir, "addresses")))
		}},
		{"another network", func(t *testing.T, s *site) {
			other := s.Network
			other.Kind = podnet.IPv6
			must(t, other.MakeRouter())
			must(t, other.WritePlugins(s.bin, build(t)))
			_, pods, err := other.Configurations()
			must(t, err)
			s.lists["pods"], err = libcni.ConfListFromBytes(pods)
			must(t, err)
		}},
		{"the machine's network", func(t *testing.T, s *site) {
			must(t, podnet.RemoveRouters(s.Dir))
			must(t, os.RemoveAll(s.bin))
			must(t, podnet.WriteNoPlugins(s.bin))
			var err error
			s.lists["pods"], err = libcni.ConfListFromBytes([]byte(podnet.NoConfiguration))
			must(t, err)
			if _, err := s.cni.AddNetworkList(t.Context(), s.lists["pods"], s.runtimeConf("new")); err == nil {
				t.Error("a pod gets a network where there is none")
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, podnet.NAT, 1)
			s.add("pods", "pod")
			tt.gone(t, s)
			if err := s.del("pods", "pod"); err != nil {
				t.Errorf("removing the pod's network: %v", err)
			}
		})
	}
}

// TestRelay: what pods send to their loopback and to the API server's service arrives on the machine's loopback, from the time on that the
// pod has a network.
func TestRelay(t *testing.T) {
	for _, tt := range []struct{ kind, service string }{{podnet.NAT, "10.0.0.1:443"}, {podnet.NAT6, "10.0.0.1:443"}, {podnet.IPv6, "[fd00:88:0:ffff::1]:443"}} {
		t.Run(tt.kind, func(t *testing.T) {
			s := newSite(t, tt.kind, shout(t))
			if got := net.JoinHostPort(s.Service().String(), fmt.Sprint(podnet.ServicePort)); got != tt.service {
				t.Errorf("the API server is at %s, want %s", got, tt.service)
			}
			s.add("pods", "pod")
			s.add("pods", "other")
			loopback := fmt.Sprintf("127.0.0.1:%d", s.Server)
			for _, address := range []string{loopback, tt.service} {
				if got, err := s.say("pod", address, "word"); got != "WORD" || err != nil {
					t.Errorf("at %s: %q, %v", address, got, err)
				}
			}
			must(t, s.del("pods", "pod"))
			if _, err := s.say("pod", loopback, "word"); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("after the pod has gone: %v", err)
			}
			if got, err := s.say("other", loopback, "word"); got != "WORD" || err != nil {
				t.Errorf("in another pod: %q, %v", got, err)
			}
		})
	}
}

// shout answers in capital letters, on the port of the machine's loopback that it returns.
func shout(t *testing.T) int {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				text, _ := io.ReadAll(conn)
				_, _ = conn.Write([]byte(strings.ToUpper(string(text))))
			}()
		}
	}()
	return server.Addr().(*net.TCPAddr).Port
}

// say says something to an address and returns the answer.
func (s *site) say(pod, address, text string) (answer string, err error) {
	err = podnet.Within(s.namespace(pod), func() error {
		conn, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, text); err != nil {
			return err
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			return err
		}
		said, err := io.ReadAll(conn)
		answer = string(said)
		return err
	})
	return answer, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
