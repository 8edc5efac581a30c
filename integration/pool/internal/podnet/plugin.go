package podnet

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"podstarter/integration/pool/internal/statedir"
)

// Verb is the program's own verb under which the container runtime runs it as a plugin.
const Verb = "pod-network"

// PluginName is the type of the plugin in configuration. The runtime also runs a plugin called loopback, in each pod.
const (
	PluginName     = "podstarter"
	loopbackPlugin = "loopback"
)

// Configuration is what the runtime reads.
func (n Network) Configuration() ([]byte, error) {
	plugin := struct {
		Type string `json:"type"`
		Network
	}{PluginName, n}
	return json.MarshalIndent(map[string]any{"cniVersion": "1.0.0", "name": "pods", "plugins": []any{plugin}}, "", "\t")
}

// WritePlugins writes the files that the runtime runs into a directory: program is this one.
func WritePlugins(dir, program string) error {
	for _, name := range []string{PluginName, loopbackPlugin} {
		script := fmt.Sprintf("#!/bin/sh\nexec '%s' %s\n", program, Verb)
		if err := statedir.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// Plugin is the body of [Verb]. It ends the process if it fails.
func Plugin() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: func(*skel.CmdArgs) error { return nil }}, version.All, "the network of a pool's pods")
}

// pluginConfig is what a plugin gets.
type pluginConfig struct {
	types.NetConf
	Network
}

// podArgs are those of Kubernetes.
type podArgs struct {
	types.CommonArgs
	K8S_POD_NAME types.UnmarshallableString
}

func read(args *skel.CmdArgs) (conf pluginConfig, pod string, err error) {
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return conf, "", fmt.Errorf("reading the plugin's configuration: %w", err)
	}
	named := podArgs{CommonArgs: types.CommonArgs{IgnoreUnknown: true}}
	if err := types.LoadArgs(args.Args, &named); err != nil {
		return conf, "", fmt.Errorf("reading the plugin's arguments: %w", err)
	}
	return conf, string(named.K8S_POD_NAME), nil
}

func add(args *skel.CmdArgs) error {
	conf, pod, err := read(args)
	if err != nil {
		return err
	}
	if conf.Type == loopbackPlugin {
		if err := within(args.Netns, func() error { return raise("lo") }); err != nil {
			return err
		}
		return types.PrintResult(&current.Result{
			Interfaces: []*current.Interface{{Name: "lo", Sandbox: args.Netns}},
			IPs:        []*current.IPConfig{{Interface: current.Int(0), Address: ipNet(netip.MustParsePrefix("127.0.0.1/8"))}},
		}, conf.CNIVersion)
	}
	own, router, err := conf.Addresses(pod)
	if err != nil {
		return err
	}
	if err := conf.connect(pod, args.Netns, args.IfName); err != nil {
		return err
	}
	if err := conf.note(pod, args.ContainerID, args.Netns); err != nil {
		return err
	}
	return types.PrintResult(&current.Result{
		Interfaces: []*current.Interface{{Name: args.IfName, Sandbox: args.Netns}},
		IPs:        []*current.IPConfig{{Interface: current.Int(0), Address: ipNet(own), Gateway: router.Addr().AsSlice()}},
	}, conf.CNIVersion)
}

func del(args *skel.CmdArgs) error {
	conf, pod, err := read(args)
	if err != nil {
		return err
	}
	if conf.Type == loopbackPlugin {
		return nil
	}
	return conf.forget(pod, args.ContainerID)
}

func ipNet(p netip.Prefix) net.IPNet {
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// notes is the directory with what the relay must know: a file for each pod, whose name is the pod's. Its first word is the
// id of the pod's sandbox, the second the file that holds its network namespace.
func (n Network) notes() string { return filepath.Join(n.Dir, "pods") }

// note notes a pod's network and waits until the relay listens there.
func (n Network) note(pod, sandbox, namespace string) error {
	if err := statedir.WriteFile(filepath.Join(n.notes(), pod), []byte(sandbox+" "+namespace+"\n"), 0o644); err != nil {
		return err
	}
	return n.tell()
}

// forget forgets a pod's network, unless a later one has its place.
func (n Network) forget(pod, sandbox string) error {
	path := filepath.Join(n.notes(), pod)
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), sandbox+" ") {
		return nil
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("forgetting the network of %s: %w", pod, err)
	}
	// A relay that does not run holds no socket there. The link goes with the namespace.
	_ = n.tell()
	return nil
}
