package podnet

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestAddresses(t *testing.T) {
	for _, tt := range []struct{ kind, pod, want string }{
		{NAT, "ap", "198.18.0.2/24 by 198.18.0.1/24"},
		{NAT, "ep", "10.88.1.2/24 by 10.88.1.1/24"},
		{IPv6, "ap", "fd00:88::2/64 by fd00:88::1/64"},
		{IPv6, "ep", "fd00:88:0:1::2/64 by fd00:88:0:1::1/64"},
		{Mixed, "ap", "fd00:88::2/64 by fd00:88::1/64 [198.18.0.2/24]"},
		{Mixed, "ep", "fd00:88:0:1::2/64 by fd00:88:0:1::1/64"},
	} {
		n := Network{Kind: tt.kind, Pods: []string{"ap", "ep"}}
		own, router, err := n.Addresses(tt.pod)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s by %s", own, router)
		if more := n.more(tt.pod); len(more) > 0 {
			got += fmt.Sprint(" ", more)
		}
		if got != tt.want {
			t.Errorf("%s in %s: %s, want %s", tt.pod, tt.kind, got, tt.want)
		}
	}
	if _, _, err := (Network{Kind: NAT, Pods: []string{"ap"}}).Addresses("stranger"); err == nil {
		t.Error("a stranger has an address")
	}
}

// TestNetworks makes the networks of two pods, and looks who reaches whom.
func TestNetworks(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	for _, tt := range []struct {
		kind  string
		in    bool   // the public pod reaches the other
		calls string // by which address the other is seen
	}{{NAT, false, "198.18.0.1"}, {IPv6, true, "fd00:88:0:1::2"}, {Mixed, true, "fd00:88:0:1::2"}} {
		t.Run(tt.kind, func(t *testing.T) {
			n := Network{Kind: tt.kind, Dir: t.TempDir(), Pods: []string{"ap", "ep"}}
			must(t, n.MakeRouter())
			t.Cleanup(func() { must(t, RemoveRouters(n.Dir)) })
			must(t, n.MakeRouter()) // once more
			at := map[string]string{}
			for _, pod := range n.Pods {
				file := filepath.Join(n.Dir, pod)
				at[pod] = file
				must(t, hold(file, func() error { return raise("lo") }))
				t.Cleanup(func() { must(t, release(file)) })
				must(t, n.connect(pod, file, "eth0"))
				must(t, n.connect(pod, remade(t, file), "eth0")) // in place of an earlier one
			}
			if from, err := call(n, at, "ep", "ap"); err != nil || from != tt.calls {
				t.Errorf("the public pod is called by %q, %v; want %s", from, err, tt.calls)
			}
			if _, err := call(n, at, "ap", "ep"); (err == nil) != tt.in {
				t.Errorf("the public pod calls: %v", err)
			}
		})
	}
}

// remade makes a network namespace anew.
func remade(t *testing.T, file string) string {
	t.Helper()
	must(t, release(file))
	must(t, hold(file, func() error { return raise("lo") }))
	return file
}

// call connects one pod to another and returns how the caller is seen.
func call(n Network, at map[string]string, from, to string) (string, error) {
	own, _, err := n.Addresses(to)
	if err != nil {
		return "", err
	}
	var l net.Listener
	if err := within(at[to], func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(own.Addr().String(), "0"))
		return err
	}); err != nil {
		return "", err
	}
	defer l.Close()
	var conn net.Conn
	if err := within(at[from], func() (err error) {
		conn, err = net.DialTimeout("tcp", l.Addr().String(), 5*time.Second)
		return err
	}); err != nil {
		return "", err
	}
	defer conn.Close()
	seen, err := l.Accept()
	if err != nil {
		return "", err
	}
	defer seen.Close()
	return seen.RemoteAddr().(*net.TCPAddr).IP.String(), nil
}

// TestRelay: what pods and the router send to their ports arrives on the machine's loopback, from the time on that the plugin
// has noted the pod.
func TestRelay(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer server.Close()
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
	port := server.Addr().(*net.TCPAddr).Port
	n := Network{Kind: NAT, Dir: t.TempDir(), Pods: []string{"ap", "ep"}, Server: port, Local: []int{port}}
	must(t, n.MakeRouter())
	t.Cleanup(func() { must(t, RemoveRouters(n.Dir)) })
	args, err := n.RelayArguments()
	must(t, err)
	go func() { _ = Relay(args[1:]) }()
	pod := filepath.Join(n.Dir, "ep")
	must(t, hold(pod, func() error { return raise("lo") }))
	t.Cleanup(func() { must(t, release(pod)) })
	must(t, n.connect("ep", pod, "eth0"))
	deadline := time.Now().Add(20 * time.Second)
	for err = n.note("ep", "one", pod); err != nil && time.Now().Before(deadline); err = n.note("ep", "one", pod) {
		runtime.Gosched() // the relay begins to listen
	}
	must(t, err)
	own := fmt.Sprint(port)
	for _, address := range []string{net.JoinHostPort("127.0.0.1", own), net.JoinHostPort(n.Service(), own), net.JoinHostPort(clusterService, fmt.Sprint(clusterPort))} {
		if got, err := say(pod, address, "word"); got != "WORD" || err != nil {
			t.Errorf("at %s: %q, %v", address, got, err)
		}
	}
	must(t, n.forget("ep", "another"))
	if _, err := say(pod, fmt.Sprintf("127.0.0.1:%d", port), "word"); err != nil {
		t.Errorf("after another pod of the name has gone: %v", err)
	}
	must(t, n.forget("ep", "one"))
	if _, err := say(pod, fmt.Sprintf("127.0.0.1:%d", port), "word"); !strings.Contains(fmt.Sprint(err), syscall.ECONNREFUSED.Error()) {
		t.Errorf("after the pod has gone: %v", err)
	}
}

func say(namespace, address, text string) (answer string, err error) {
	err = within(namespace, func() error {
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

func TestConfiguration(t *testing.T) {
	n := Network{Kind: NAT, Dir: "/run/x", Pods: []string{"ap", "ep"}, Server: 6443, Local: []int{80}}
	text, err := n.Configuration()
	must(t, err)
	var conf struct{ Plugins []pluginConfig }
	must(t, json.Unmarshal(text, &conf))
	if len(conf.Plugins) != 1 || conf.Plugins[0].Type != PluginName {
		t.Fatalf("%s", text)
	}
	if diff := cmp.Diff(n, conf.Plugins[0].Network); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
