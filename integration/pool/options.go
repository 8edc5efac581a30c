package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"podstarter/integration/pool/internal/cluster"
)

// checkNode says whether there can be a node as it was chosen, given the containerd of the one that is here.
func (p *pool) checkNode(was string, there bool) error {
	s := &p.settings
	if _, ok := cluster.Containerds[s.Containerd]; !ok {
		return fmt.Errorf("containerd %s is not known here; %s are", s.Containerd, strings.Join(slices.Sorted(maps.Keys(cluster.Containerds))[1:], ", "))
	}
	if s.Containerd != "" && s.Guests == 0 && s.Address == "" {
		return fmt.Errorf("containerd %s: its package may need a later C library than this machine has; use --guest", s.Containerd)
	}
	if there && was != s.Containerd {
		return errors.New("the containers here were made by another containerd; stop the pool with `down` before `up --containerd`")
	}
	if !slices.Contains(cluster.OCIRuntimes, s.OCIRuntime) {
		return fmt.Errorf("OCI runtime %s is not known here; %s are", s.OCIRuntime, strings.Join(cluster.OCIRuntimes[1:], ", "))
	}
	switch {
	case !s.UserNamespaces:
	case s.Guests == 0 && s.Address == "":
		return errors.New("user namespaces: containerd and kernel of this machine may lack them; use --guest")
	case max(s.Guests, s.Nodes) > 1:
		return errors.New("user namespaces: such pods have networks of their own, which do not reach from one guest to another")
	}
	return nil
}
