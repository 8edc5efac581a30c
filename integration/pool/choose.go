package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/podnet"
)

// choose takes the arguments; what they do not mention stays as it was.
func (p *pool) choose(args []string) error {
	s := &p.settings
	if s.Condor == "" {
		s.Condor, s.Slots = "25.14", 1
	}
	if s.Mode == "" {
		s.Mode = modeShared
	}
	s.Network = cmp.Or(s.Network, podnet.Host)
	was, wasContainerd := s.Kubernetes, s.Containerd
	s.Kubernetes = cmp.Or(s.Kubernetes, cluster.DefaultKubernetes)
	wasGuest := s.Guests > 0
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.BoolVar(&s.Stock, "stock", s.Stock, "a second execution point, with the stock starter")
	flags.BoolVar(&s.StockDocker, "stock-docker", s.StockDocker, "one more, with the stock starter and Docker")
	flags.BoolVar(&s.StockApptainer, "stock-apptainer", s.StockApptainer, "one more, with the stock starter, Apptainer and a Java")
	flags.StringVar(&s.Condor, "condor", s.Condor, "the version of HTCondor")
	flags.StringVar(&s.APCondor, "ap-condor", s.APCondor, "the version of the submit side, if it is another")
	flags.StringVar(&s.Kubernetes, "kubernetes", s.Kubernetes, "the version of Kubernetes")
	flags.BoolVar(&s.Controllers, "controllers", s.Controllers, "controller manager and scheduler")
	flags.Var(&s.FeatureGates, "gates", "feature gates of Kubernetes")
	flags.Var(&s.Kubelet, "kubelet", "fields of the kubelet's configuration")
	flags.StringVar(&s.Containerd, "containerd", s.Containerd, "the version of containerd")
	flags.StringVar(&s.OCIRuntime, "oci-runtime", s.OCIRuntime, "what containerd makes containers with")
	flags.BoolVar(&s.UserNamespaces, "user-namespaces", s.UserNamespaces, "user namespaces, and networks, of the execution points' own")
	// Not kept: only the tests that asked for them use them.
	flags.IntVar(&s.Faults, "faults", 0, "execution points that are there to fail")
	flags.IntVar(&s.FaultsAPI, "faults-api", 0, "port on which these look for the API server")
	flags.IntVar(&s.Slots, "slots", s.Slots, "slots, and payload containers for them, of the execution point")
	flags.IntVar(&s.Spares, "spares", s.Spares, "payload containers of ours that are more than the slots need")
	flags.IntVar(&s.GPUs, "gpus", s.GPUs, "payload containers of ours that have a device")
	flags.BoolVar(&s.Sidecars, "sidecars", s.Sidecars, "payload containers are sidecars, in pods that end with their pilot")
	flags.BoolVar(&s.Dockerfile, "dockerfile", s.Dockerfile, "the pilot image is the one that deploy/image/Dockerfile makes")
	flags.IntVar(&s.Pullers, "pullers", s.Pullers, "pods that get images onto the node of the execution point")
	flags.BoolVar(&s.Audit, "audit", s.Audit, "log all requests to the API server, not only those of pilots")
	flags.BoolVar(&s.Partitionable, "partitionable", s.Partitionable, "one slot that the startd cuts into as many")
	flags.StringVar(&s.Mode, "mode", s.Mode, "what pilot and payload containers share")
	flags.StringVar(&s.Network, "network", s.Network, "the network of all pods")
	guest := flags.Bool("guest", wasGuest, "in a guest with cgroup v2")
	flags.IntVar(&s.Guests, "guests", s.Guests, "in so many guests, each a node of the cluster")
	// Of a pool in guests, for the program in the first one.
	flags.StringVar(&s.Address, "address", s.Address, "address of this machine for the cluster's other nodes")
	flags.IntVar(&s.Nodes, "nodes", s.Nodes, "nodes of the cluster")
	flags.BoolVar(&p.clusterOnly, "cluster-only", false, "without pods")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return errUsage
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if given["condor"] && !given["ap-condor"] || s.APCondor == s.Condor {
		s.APCondor = ""
	}
	switch {
	case *guest:
		s.Guests = max(s.Guests, 1)
	case given["guest"]:
		s.Guests = 0
	}
	if wasGuest && s.Guests == 0 {
		return errors.New("the pool runs in a guest; stop it with `down` before one without a guest is started")
	}
	for _, version := range s.Versions() {
		if _, ok := condorRoots[version]; !ok {
			return fmt.Errorf("HTCondor %s is not known here; 25.14 and 23.9 are", version)
		}
	}
	if len(p.chosenReferences()) > 0 && s.Condor != referenceCondor {
		return fmt.Errorf("execution points with Docker or Apptainer have HTCondor %s, and this pool %s; leave one out", referenceCondor, s.Condor)
	}
	if s.StockApptainer && (s.Guests > 0 || s.Address != "") {
		return errors.New("an execution point with Apptainer: it mounts images by FUSE, which the kernel of a guest lacks; leave it out, or do without --guest")
	}
	if err := p.checkKubernetes(was); err != nil {
		return err
	}
	if s.Slots < 1 || s.Slots > maxSlots {
		return fmt.Errorf("%d slots: the number must be from 1 to %d", s.Slots, maxSlots)
	}
	if s.Spares < 0 || s.Spares > maxSpares {
		return fmt.Errorf("%d spares: the number must be from 0 to %d", s.Spares, maxSpares)
	}
	if s.Pullers < 0 || s.Pullers > maxPullers {
		return fmt.Errorf("%d pullers: at most %d are possible", s.Pullers, maxPullers)
	}
	if _, ok := glideins[s.Mode]; !ok {
		return fmt.Errorf("mode %s is not known here; %s, %s and %s are", s.Mode, modeShared, modeUnshared, modeRootless)
	}
	if s.Mode == modeRootless && s.Slots+s.Spares > 1 {
		return fmt.Errorf("%d slots and %d spares: a pilot without root has one payload container", s.Slots, s.Spares)
	}
	if s.Guests < 0 || s.Guests > maxGuests {
		return fmt.Errorf("%d guests: at most %d are possible", s.Guests, maxGuests)
	}
	if s.Mode == modeRootless && s.Guests > 1 {
		return errors.New("several guests: a pilot without root would not own its logs on the other nodes")
	}
	if s.Faults < 0 || s.Faults > maxFaults {
		return fmt.Errorf("%d execution points that fail: at most %d are possible", s.Faults, maxFaults)
	}
	if err := p.checkGPUs(); err != nil {
		return err
	}
	if err := p.checkDockerfile(); err != nil {
		return err
	}
	if err := p.checkNetwork(); err != nil {
		return err
	}
	if err := p.checkNode(wasContainerd, was != ""); err != nil {
		return err
	}
	flags.VisitAll(func(f *flag.Flag) {
		if !slices.Contains(ofGuests, f.Name) {
			p.chosen = append(p.chosen, "--"+f.Name+"="+f.Value.String())
		}
	})
	return p.save()
}

// ofGuests are the options that the program in a guest does not have from the user.
var ofGuests = []string{"guest", "guests", "address", "nodes", "cluster-only"}

// checkKubernetes says whether there can be a pool of the version that was chosen, given that of the pool that is here.
func (p *pool) checkKubernetes(was string) error {
	known, err := cluster.KubernetesVersions(p.componentDir())
	if err != nil {
		return err
	}
	version := p.settings.Kubernetes
	if !slices.Contains(known, version) {
		return fmt.Errorf("version %s of Kubernetes is not known here; %s are", version, strings.Join(known, ", "))
	}
	if was != "" && was != version {
		return fmt.Errorf("the pool here has Kubernetes %s, whose data another version need not understand; stop it with `down` before `up --kubernetes %s`", was, version)
	}
	return nil
}

func (p *pool) componentDir() string { return p.dir.Source("integration", "components") }

// components are the programs built from source.
func (p *pool) components() []cluster.Component {
	version := cmp.Or(p.settings.Kubernetes, cluster.DefaultKubernetes)
	all := cluster.Components(p.componentDir(), version)
	if p.settings.Controllers {
		all = append(all, cluster.ControllersOf(p.componentDir(), version))
	}
	return all
}

func (p *pool) save() error {
	p.node.Settings = p.settings
	return p.dir.Save(p.settings)
}
