package cluster

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"podstarter/integration/pool/internal/podnet"
	"podstarter/integration/pool/internal/statedir"
)

// PodNetwork begins the addresses of pods that have networks of their own. The range is private (RFC 1918).
const PodNetwork = "10.88.0."

// networkPlugins is where the CNI plugins are: Debian's, or what podnet writes.
func (n Node) networkPlugins() string {
	if n.Settings.UserNamespaces {
		return "/usr/lib/cni"
	}
	return n.State.Path("cni", "bin")
}

// networks is the directory of the CNI configuration of all pods but those of the submit side, whose own is below it.
func (n Node) networks() string { return n.State.Path("cni") }

// submitNetworks is the directory of the CNI configuration of the submit side, if that is another.
func (n Node) submitNetworks() string { return n.State.Path("cni", podnet.SubmitSide) }

// conflist is the name of a file with CNI configuration.
const conflist = "10-network.conflist"

// writeNetwork writes the CNI configuration. Pods with user namespaces are on a bridge, whose own address is that of the node.
func (n Node) writeNetwork() (err error) {
	submit, config := []byte(podnet.NoConfiguration), []byte(podnet.NoConfiguration)
	switch {
	case n.PodNetwork != nil:
		if submit, config, err = n.PodNetwork.Configurations(); err != nil {
			return err
		}
		err = n.PodNetwork.WritePlugins(n.networkPlugins(), n.NetworkPrograms)
	case !n.Settings.UserNamespaces:
		err = podnet.WriteNoPlugins(n.networkPlugins())
	}
	if err != nil {
		return err
	}
	if n.Settings.UserNamespaces {
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
	if err := statedir.WriteFile(filepath.Join(n.submitNetworks(), conflist), submit, 0o644); err != nil {
		return err
	}
	return statedir.WriteFile(filepath.Join(n.networks(), conflist), config, 0o644)
}
