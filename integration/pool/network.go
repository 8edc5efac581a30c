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
		Kind: p.settings.Network, Dir: networkDir(p.dir),
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

// networkPrograms gets the programs that make networks.
func (p *pool) networkPrograms(ctx context.Context) (podnet.Programs, error) {
	programs := podnet.Programs{Pool: p.dir.Path("bin", "pool")}
	err := p.progress.step(ctx, "network plugins", func(ctx context.Context) (err error) {
		if programs.Plugins, err = cluster.NetworkPlugins(p.componentDir()).Build(ctx, p.store, p.log); err != nil {
			return err
		}
		programs.NFT, err = cluster.NFT(ctx, p.store, p.log)
		return err
	})
	return programs, err
}

// submitAddress is where all reach the submit side.
func (p *pool) submitAddress() netip.Addr {
	if p.ownNetworks() {
		return p.podNetwork().SubmitSide()
	}
	return netip.MustParseAddr(p.address(0))
}

// collector is where the collector listens, HOST:PORT.
func (p *pool) collector() string {
	return net.JoinHostPort(p.submitAddress().String(), strconv.Itoa(p.settings.Ports[poolPod]))
}

// apiServer is where pilots reach the API server.
func (p *pool) apiServer() (host string, port int) {
	if p.ownNetworks() {
		return p.podNetwork().Service().String(), podnet.ServicePort
	}
	return p.address(0), p.settings.Ports[cluster.APIServer]
}

// interfaces is the configuration of a pod's own addresses. HTCondor finds those of a pod that has a network of its own.
func (p *pool) interfaces(node int) string {
	if !p.ownNetworks() {
		own := netip.MustParseAddr(p.address(node))
		return fmt.Sprintf("NETWORK_INTERFACE = %s\nENABLE_IPV4 = %t\nENABLE_IPV6 = %t\n", own, own.Is4(), own.Is6())
	}
	config := "NETWORK_INTERFACE = eth0\n"
	if p.settings.Network == podnet.IPv6 || p.settings.Network == podnet.NAT6 {
		config += "ENABLE_IPV4 = false\n"
	}
	return config
}

// joinSubmitNetwork gives the pod of the submit side its network, if that is not the machine's.
func (p *pool) joinSubmitNetwork(spec map[string]any) {
	if p.ownNetworks() {
		spec["runtimeClassName"] = podnet.SubmitSide
	}
}

// submitRuntime is the class of pods that get the network of the submit side.
func submitRuntime() cluster.Object {
	return cluster.Object{
		"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass",
		"metadata": map[string]any{"name": podnet.SubmitSide}, "handler": podnet.SubmitSide,
	}
}
