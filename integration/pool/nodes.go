package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/statedir"
)

// A cluster of several nodes: each is a guest. The first has all of the pool and execution points of its own; the others have
// containerd, a kubelet and one more of each execution point. Numbers of nodes begin at 0.

// maxGuests bounds the guests, each of which takes 2 GB of memory.
const maxGuests = 4

// numbered is a name on a node: the first node's is the name itself, the second's ends in -2.
func numbered(name string, node int) string {
	if node == 0 {
		return name
	}
	return name + "-" + strconv.Itoa(node+1)
}

func nodeName(node int) string { return numbered("node", node) }

// podOn is the name of an execution point on a node.
func podOn(node int, pod string) string { return numbered(pod, node) }

// ownNames gives the objects of an execution point beside the first node's names of their own.
func (plan plan) ownNames() plan {
	if plan.node > 0 {
		plan.configMap, plan.suffix = configOf(plan.pod), strconv.Itoa(plan.node+1)
	}
	return plan
}

// nodeOf is the node on which a pod with this name is.
func nodeOf(pod string) int {
	for node := range maxGuests {
		if pod == podOn(node, glideinPod) || pod == podOn(node, stockPod) {
			return node
		}
	}
	return 0
}

// nodes is how many nodes the cluster has.
func (p *pool) nodes() int { return max(p.settings.Nodes, 1) }

// address is that of a node for all others.
func (p *pool) address(node int) string {
	if p.settings.Address == "" {
		return "127.0.0.1"
	}
	return guestAddress(node)
}

// executionPoints are those that the settings ask for; gone are the pods of the others.
func (p *pool) executionPoints() (plans []plan, gone []string) {
	for node := range maxGuests {
		if node < p.nodes() {
			plans = append(plans, p.glideinPlan(node))
		} else {
			gone = append(gone, podOn(node, glideinPod))
		}
		if node < p.nodes() && p.settings.Stock {
			plans = append(plans, p.stockPlan(node))
		} else {
			gone = append(gone, podOn(node, stockPod))
		}
	}
	for _, r := range references {
		if r.chosen(p) {
			plans = append(plans, p.referencePlan(r))
		} else {
			gone = append(gone, r.pod)
		}
	}
	return plans, gone
}

// An invitation is what a machine needs to become a node.
type invitation struct {
	Name     string
	Identity cluster.NodeIdentity
	Settings statedir.Settings
}

// Verbs of this program's own, in guests.
const (
	// inviteVerb prints the invitation of the node with a number.
	inviteVerb = "invite"
	// joinVerb makes the machine the node that the invitation on standard input says.
	joinVerb = "join"
)

// invite is the body of inviteVerb.
func invite(dir statedir.Dir, args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	node, err := strconv.Atoi(args[0])
	if err != nil || node < 1 || node >= maxGuests {
		return errUsage
	}
	p, err := openPool(dir, newProgress(io.Discard), io.Discard)
	if err != nil {
		return err
	}
	if p.settings.Address == "" {
		return errors.New("other nodes cannot reach this one: it has no address for them")
	}
	i := invitation{Name: nodeName(node), Settings: p.settings}
	if i.Identity, err = p.node.PKI.Invite(i.Name); err != nil {
		return err
	}
	i.Settings.First, i.Settings.Address = p.settings.Address, guestAddress(node)
	// What is about the first machine alone.
	i.Settings.NodeIP, i.Settings.Link, i.Settings.Sysctls, i.Settings.Absent, i.Settings.Faults = "", "", nil, nil, 0
	i.Settings.Ports = map[string]int{cluster.APIServer: p.settings.Ports[cluster.APIServer], cluster.Registry: p.settings.Ports[cluster.Registry]}
	return json.NewEncoder(os.Stdout).Encode(i)
}

// maxInvitation bounds an invitation in bytes.
const maxInvitation = 1 << 20

// join is the body of joinVerb.
func join(ctx context.Context, dir statedir.Dir, in io.Reader) error {
	var i invitation
	if err := json.NewDecoder(io.LimitReader(in, maxInvitation)).Decode(&i); err != nil {
		return fmt.Errorf("reading the invitation: %w", err)
	}
	progress := newProgress(os.Stdout)
	unlock, err := lock(ctx, dir, progress)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := openPool(dir, progress, io.Discard)
	if err != nil {
		return err
	}
	// The ports of what runs here stay.
	for name, port := range p.settings.Ports {
		if _, ok := i.Settings.Ports[name]; !ok {
			i.Settings.Ports[name] = port
		}
	}
	i.Settings.NodeIP = i.Settings.Address
	p.settings, p.node.Name = i.Settings, i.Name
	for _, name := range []string{cluster.Kubelet, "kubelet-healthz"} {
		_, runs := p.daemons.Running(cluster.Kubelet)
		if _, err := statedir.ChoosePort(p.settings.Ports, name, p.dir.ID(), runs, statedir.Free); err != nil {
			return err
		}
	}
	if err := p.save(); err != nil {
		return err
	}
	return p.startNode(ctx, i.Identity)
}

// startNode starts what a node beside the first has.
func (p *pool) startNode(ctx context.Context, id cluster.NodeIdentity) error {
	n := &p.node
	if err := n.PKI.Accept(id); err != nil {
		return err
	}
	api, err := cluster.NewAPI(n.Server(), n.PKI, cluster.ThisNode)
	if err != nil {
		return err
	}
	p.api = api
	n.PauseImage = p.repo("pause") + ":1"
	for _, c := range p.components() {
		if c.Family == cluster.Kubernetes {
			if n.KubernetesDir, err = c.Build(ctx, p.store, p.log); err != nil {
				return err
			}
		}
	}
	if n.ContainerdDir, err = cluster.ContainerdPrograms(ctx, p.settings.Containerd, p.store, p.log); err != nil {
		return err
	}
	if err := p.progress.step(ctx, cluster.Containerd, n.StartContainerd); err != nil {
		return err
	}
	return p.progress.step(ctx, cluster.Kubelet, func(ctx context.Context) error { return n.StartKubelet(ctx, api) })
}

// guestAddress is that of the guest with a number.
func guestAddress(node int) string {
	base := net.ParseIP(guestHost).To4()
	return net.IPv4(base[0], base[1], base[2], base[3]+1+byte(node)).String()
}
