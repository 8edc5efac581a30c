package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/daemon"
	"podstarter/integration/pool/internal/podnet"
	"podstarter/integration/pool/internal/statedir"
	"podstarter/integration/pool/internal/web"
)

// relayDaemon is the name of the daemon that takes pods' connections to what listens on the machine's loopback.
const relayDaemon = "relay"

// checkNetwork says whether there can be such a network.
func (p *pool) checkNetwork() error {
	s := p.settings
	if !slices.Contains(podnet.Kinds, s.Network) {
		return fmt.Errorf("network %s is not known here; %s are", s.Network, strings.Join(podnet.Kinds, ", "))
	}
	switch {
	case !p.ownNetworks():
		return nil
	case s.Guests > 0 || s.Address != "":
		return errors.New("networks of the pods' own: they do not reach from one guest to another; leave --guest out")
	case s.Faults > 0:
		return errors.New("networks of the pods' own: execution points that fail look for the API server on the machine's loopback")
	case len(p.chosenReferences()) > 0:
		return errors.New("networks of the pods' own: the images of jobs come from the machine's loopback; leave out the execution points with Docker and Apptainer")
	}
	return nil
}

// ownNetworks reports whether the pods have networks of their own.
func (p *pool) ownNetworks() bool {
	return p.settings.Network != podnet.Host && p.settings.Network != ""
}

func networkDir(dir statedir.Dir) string { return dir.Run("net") }

// podNetwork is the network of all pods, if it is not the machine's.
func (p *pool) podNetwork() podnet.Network {
	ports := p.settings.Ports
	return podnet.Network{
		Kind: p.settings.Network, Dir: networkDir(p.dir), Pods: []string{poolPod, glideinPod, stockPod},
		Server: ports[cluster.APIServer], Local: []int{ports[web.HTTP], ports[web.HTTPS], ports[web.Stranger]},
	}
}

// startNetwork makes the router and starts the relay, or removes those of an earlier choice.
func (p *pool) startNetwork(ctx context.Context) (*podnet.Network, error) {
	if !p.ownNetworks() {
		if err := p.daemons.Stop(ctx, relayDaemon, 5*time.Second); err != nil {
			return nil, err
		}
		return nil, podnet.RemoveRouters(networkDir(p.dir))
	}
	n := p.podNetwork()
	if err := n.MakeRouter(); err != nil {
		return nil, err
	}
	args, err := n.RelayArguments()
	if err != nil {
		return nil, err
	}
	_, err = p.daemons.Start(ctx, daemon.Spec{Name: relayDaemon, Args: append([]string{p.dir.Path("bin", "pool")}, args...)})
	return &n, err
}

// podAddress is that of a pod for all others.
func (p *pool) podAddress(node int, pod string) netip.Addr {
	if !p.ownNetworks() {
		return netip.MustParseAddr(p.address(node))
	}
	own, _, err := p.podNetwork().Addresses(pod)
	if err != nil {
		panic(err) // checkNetwork has refused all other pods
	}
	return own.Addr()
}

// collector is where the collector listens, HOST:PORT.
func (p *pool) collector() string {
	return net.JoinHostPort(p.podAddress(0, poolPod).String(), strconv.Itoa(p.settings.Ports[poolPod]))
}

// apiAddress is where pilots reach the API server.
func (p *pool) apiAddress() string {
	if p.ownNetworks() {
		return p.podNetwork().Service()
	}
	return p.address(0)
}

// interfaces is the configuration of a pod's own addresses.
func (p *pool) interfaces(node int, pod string) string {
	own := p.podAddress(node, pod)
	switch {
	case p.settings.Network != podnet.Mixed:
		return fmt.Sprintf("NETWORK_INTERFACE = %s\nENABLE_IPV4 = %t\nENABLE_IPV6 = %t\n", own, own.Is4(), own.Is6())
	case pod == poolPod:
		return "NETWORK_INTERFACE = eth0\n"
	}
	return fmt.Sprintf("NETWORK_INTERFACE = %s\n", own)
}
