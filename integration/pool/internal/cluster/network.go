package cluster

import (
	"encoding/json"
	"fmt"

	"podstarter/integration/pool/internal/podnet"
	"podstarter/integration/pool/internal/statedir"
)

// PodNetwork begins the addresses of pods that have networks of their own. The range is private (RFC 1918).
const PodNetwork = "10.88.0."

// networkPlugins is where the CNI plugins are: Debian's, or ours.
func (n Node) networkPlugins() string {
	if n.PodNetwork != nil {
		return n.State.Path("cni", "bin")
	}
	return "/usr/lib/cni"
}

// noNetwork is a CNI configuration whose plugin does not exist: containerd calls its network ready as soon as it has a
// configuration, and the node is ready only then. Only a pod with a network of its own would need the plugin.
const noNetwork = `{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]}
`

// writeNetwork writes the CNI configuration. Pods with networks of their own are on a bridge, whose own address is that of
// the node.
func (n Node) writeNetwork() error {
	config := []byte(noNetwork)
	if n.PodNetwork != nil {
		var err error
		if config, err = n.PodNetwork.Configuration(); err != nil {
			return fmt.Errorf("writing down the pods' network: %w", err)
		}
		if err := podnet.WritePlugins(n.networkPlugins(), n.State.Path("bin", "pool")); err != nil {
			return err
		}
	}
	if n.Settings.UserNamespaces {
		var err error
		config, err = json.MarshalIndent(map[string]any{
			"cniVersion": "1.0.0", "name": "pods", "plugins": []any{map[string]any{
				"type": "bridge", "bridge": "pods", "isGateway": true,
				"ipam": map[string]any{
					"type": "host-local", "dataDir": n.State.Path("cni", "addresses"),
					"ranges": []any{[]any{map[string]any{"subnet": PodNetwork + "0/24"}}},
					"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
				},
			}},
		}, "", "\t")
		if err != nil {
			return fmt.Errorf("writing down the pods' network: %w", err)
		}
	}
	return statedir.WriteFile(n.State.Path("cni", "10-network.conflist"), config, 0o644)
}
