package podnet

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"

	"podstarter/integration/pool/internal/statedir"
)

// SubmitSide is the name of the submit side's network, and of the RuntimeClass by which its pod gets it.
const SubmitSide = "submit-side"

// pods is the name of the network of all other pods.
const pods = "pods"

// backend is the firewall with which the plugin hides addresses.
const backend = "nftables"

// Configurations are what the container runtime reads for a pod of the submit side, and for all others.
func (n Network) Configurations() (submit, others []byte, err error) {
	submit, err = n.configuration(SubmitSide, n.submitAddresses())
	if err != nil {
		return nil, nil, err
	}
	others, err = n.configuration(pods, n.podAddresses())
	return submit, others, err
}

type m = map[string]any

// configuration is that of a network with a bridge in the router.
func (n Network) configuration(name string, ipam m) ([]byte, error) {
	relay := struct {
		Type string `json:"type"`
		Network
	}{relayPlugin, n}
	text, err := json.MarshalIndent(m{"cniVersion": "1.0.0", "name": name, "plugins": []any{
		m{
			"type": bridgePlugin, "bridge": name, "isGateway": true, "hairpinMode": true,
			"ipMasq": n.Private() && name == pods, "ipMasqBackend": backend, "ipam": ipam,
		},
		relay,
	}}, "", "\t")
	if err != nil {
		return nil, fmt.Errorf("writing down the network %s: %w", name, err)
	}
	return text, nil
}

// podAddresses gives each pod the next address that is free.
func (n Network) podAddresses() m {
	subnets := []netip.Prefix{podsIPv6}
	if n.Private() {
		subnets = []netip.Prefix{podsIPv4, podsIPv6}
	}
	var ranges, routes []any
	for _, subnet := range subnets {
		ranges = append(ranges, []any{m{"subnet": subnet}})
		routes = append(routes, route(everywhere(subnet.Addr())))
	}
	return m{"type": "host-local", "dataDir": n.addresses(), "ranges": ranges, "routes": routes}
}

// submitAddresses gives the submit side addresses that all know. Behind NAT it has no route to other pods.
func (n Network) submitAddresses() m {
	var own []netip.Prefix
	var routes []any
	switch {
	case n.Private():
		own = []netip.Prefix{submitIPv4, submitPublic}
	case n.Kind == Mixed:
		own = []netip.Prefix{submitIPv6, submitIPv4}
	default:
		own = []netip.Prefix{submitIPv6}
	}
	if !n.Private() {
		routes = append(routes, route(everywhere(submitIPv6.Addr())))
	}
	var addresses []any
	for _, a := range own {
		addresses = append(addresses, m{"address": a, "gateway": a.Masked().Addr().Next()})
	}
	return m{"type": "static", "addresses": addresses, "routes": routes}
}

func route(to netip.Prefix) m { return m{"dst": to} }

// everywhere is the prefix of all addresses of the same protocol.
func everywhere(a netip.Addr) netip.Prefix {
	all, _ := a.Prefix(0)
	return all
}

// addresses is where it is noted which addresses pods have.
func (n Network) addresses() string { return filepath.Join(n.Dir, "addresses") }

// Names of the plugins that the runtime runs, which are their types in configuration. It runs loopback in each pod.
const (
	bridgePlugin   = "bridge"
	relayPlugin    = "podstarter"
	loopbackPlugin = "loopback"
	noPlugin       = "none"
)

// Programs are those that the plugins need.
type Programs struct {
	// Plugins is the directory of CNI's reference plugins.
	Plugins string
	// NFT is the root of a file system with nft.
	NFT string
	// Pool is this program.
	Pool string
}

// inRouter runs a plugin in the router, which is the node that it sees. The router may be gone before a pod is, and all that the pod
// had there with it: removing a network must succeed then.
const inRouter = `#!/bin/sh
if [ "$CNI_COMMAND" = DEL ] && ! nsenter --net='%[1]s' true 2>/dev/null; then exit 0; fi
CNI_PATH='%[3]s' PATH='%[2]s':"$PATH" exec nsenter --net='%[1]s' '%[3]s/%[4]s'
`

// WritePlugins writes what the runtime runs as plugins into a directory.
func (n Network) WritePlugins(dir string, programs Programs) error {
	scripts := map[string]string{
		// The program's libraries are of another system than this one.
		"nft":          fmt.Sprintf("#!/bin/sh\nexec chroot '%s' /usr/sbin/nft \"$@\"\n", programs.NFT),
		loopbackPlugin: fmt.Sprintf("#!/bin/sh\nexec '%s/%s'\n", programs.Plugins, loopbackPlugin),
		relayPlugin:    fmt.Sprintf("#!/bin/sh\nexec '%s' %s\n", programs.Pool, Verb),
		bridgePlugin:   fmt.Sprintf(inRouter, n.router(), dir, programs.Plugins, bridgePlugin),
	}
	return writeScripts(dir, scripts)
}

// NoConfiguration is the configuration for a pool whose pods have the machine's network. The runtime calls its network ready as soon as
// it has a configuration, and the node is ready only then.
const NoConfiguration = `{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "` + noPlugin + `"}]}
`

// WriteNoPlugins writes the plugins for that. They remove the networks of pods from an earlier choice, and make none.
func WriteNoPlugins(dir string) error {
	const script = "#!/bin/sh\n[ \"$CNI_COMMAND\" = DEL ]\n"
	return writeScripts(dir, map[string]string{noPlugin: script, loopbackPlugin: script})
}

func writeScripts(dir string, scripts map[string]string) error {
	for name, text := range scripts {
		if err := statedir.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}
