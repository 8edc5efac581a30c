package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/daemon"
	"podstarter/integration/pool/internal/debian"
	"podstarter/integration/pool/internal/enter"
	"podstarter/integration/pool/internal/image"
	"podstarter/integration/pool/internal/objects"
	"podstarter/integration/pool/internal/podnet"
	"podstarter/integration/pool/internal/statedir"
	"podstarter/integration/pool/internal/web"
)

// pool is one pool while the program works on it.
type pool struct {
	dir      statedir.Dir
	settings statedir.Settings
	store    cache.Cache
	daemons  daemon.Set
	node     cluster.Node
	api      *cluster.API
	kubectl  string
	images   map[string]string
	progress *progress
	// kubelet is held by whoever replaces the kubelet.
	kubelet *sync.Mutex
	// chosen are all options of `up`, those of earlier runs too, without those that are about guests: a guest whose disk was
	// lost must get the same.
	chosen []string
	// clusterOnly says that this `up` leaves the pods as they are.
	clusterOnly bool
	// log takes the output of the tools.
	log io.Writer
}

// openPool reads what is known of the pool.
func openPool(dir statedir.Dir, p *progress, log io.Writer) (*pool, error) {
	settings, err := dir.Load()
	if err != nil {
		return nil, err
	}
	store, err := cache.User()
	if err != nil {
		return nil, err
	}
	cgroups, err := cluster.FindCgroups("podstarter-" + dir.ID())
	if err != nil {
		return nil, err
	}
	daemons := daemon.Set{Records: dir.Path("run"), Logs: dir.Path("log")}
	return &pool{
		dir: dir, settings: settings, store: store, daemons: daemons, progress: p, log: log, kubelet: new(sync.Mutex),
		node: cluster.Node{State: dir, Daemons: daemons, PKI: cluster.PKI{Dir: dir.Path("pki")}, Name: nodeName(0), Settings: settings, Cgroups: cgroups},
	}, nil
}

// lock makes sure that one program at a time changes the pool.
func lock(ctx context.Context, dir statedir.Dir, p *progress) (func(), error) {
	store, err := cache.User()
	if err != nil {
		return nil, err
	}
	return statedir.Lock(ctx, filepath.Join(store.Root, "locks", dir.ID()), func() {
		p.print("waiting for another `up` or `down` of %s", dir.Root)
	})
}

func up(ctx context.Context, dir statedir.Dir, args []string) error {
	p := newProgress(os.Stdout)
	unlock, err := lock(ctx, dir, p)
	if err != nil {
		return err
	}
	defer unlock()
	if os.Getuid() != 0 {
		return errors.New("bringing up a cluster mounts file systems and makes cgroups; run this as root")
	}
	if err := os.MkdirAll(dir.Path("log"), 0o755); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	log, err := os.OpenFile(dir.Path("log", "up.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer log.Close()
	pool, err := openPool(dir, p, log)
	if err != nil {
		return err
	}
	if err := pool.choose(args); err != nil {
		return err
	}
	if err := pool.installSelf(); err != nil {
		return err
	}
	if pool.settings.Guests > 0 {
		return pool.upGuests(ctx, pool.chosen)
	}
	if err := pool.prepareHost(ctx); err != nil {
		return err
	}
	if err := pool.startAll(ctx); err != nil {
		return err
	}
	p.print("up: Kubernetes %s, HTCondor %s; %s", pool.settings.Kubernetes, strings.Join(pool.settings.Versions(), ", submit side "), dir.Path("bin", "pool"))
	return nil
}

// installSelf puts this program where daemons and tests find it, whatever `go run` does with it afterwards.
func (p *pool) installSelf() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return fmt.Errorf("reading this program: %w", err)
	}
	target := p.dir.Path("bin", "pool")
	if old, err := os.ReadFile(target); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return statedir.WriteFile(target, data, 0o755)
}

// prepareHost installs packages, and notes what must be restored on the machine later.
func (p *pool) prepareHost(ctx context.Context) error {
	if p.settings.Sysctls == nil {
		p.settings.Sysctls = cluster.ReadSysctls()
		p.settings.Absent = cluster.AbsentDirs()
	}
	addr, ok, err := cluster.NodeAddress()
	if err != nil {
		return err
	}
	err = p.progress.step(ctx, "packages", func(ctx context.Context) error {
		installed, err := debian.Install(ctx, p.log, !ok)
		if len(installed) > 0 {
			p.progress.print("installed %v", installed)
		}
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case p.settings.NodeIP != "" && cluster.HasAddress(p.settings.NodeIP):
	case ok:
		p.settings.NodeIP = addr
	default:
		p.settings.Link = "ps" + p.dir.ID()
		if err := p.save(); err != nil {
			return err
		}
		if p.settings.NodeIP, err = cluster.MakeLink(ctx, p.settings.Link); err != nil {
			return err
		}
	}
	if err := p.choosePorts(); err != nil {
		return err
	}
	return p.save()
}

// choosePorts chooses a port for everything that listens, and keeps those of what runs.
func (p *pool) choosePorts() error {
	type port struct {
		name, daemon, pod, container string
		node                         int
	}
	ports := []port{
		{name: cluster.Etcd, daemon: cluster.Etcd},
		{name: "etcd-peer", daemon: cluster.Etcd},
		{name: cluster.APIServer, daemon: cluster.APIServer},
		{name: cluster.ControllerManager, daemon: cluster.ControllerManager},
		{name: cluster.Scheduler, daemon: cluster.Scheduler},
		{name: cluster.Kubelet, daemon: cluster.Kubelet},
		{name: "kubelet-healthz", daemon: cluster.Kubelet},
		{name: registryVerb, daemon: registryVerb},
		{name: web.HTTP, daemon: web.Name},
		{name: web.HTTPS, daemon: web.Name},
		{name: web.Stranger, daemon: web.Name},
		{name: objects.Name, daemon: objects.Name},
		{name: poolPod, pod: poolPod, container: poolContainer},
	}
	for i := range p.nodes() {
		for _, name := range []string{podOn(i, glideinPod), podOn(i, stockPod)} {
			ports = append(ports, port{name: name, node: i, pod: name, container: pilotContainer})
		}
	}
	for _, r := range p.chosenReferences() {
		ports = append(ports, port{name: r.pod, pod: r.pod, container: pilotContainer})
	}
	for _, name := range p.faultPods() {
		ports = append(ports, port{name: name, pod: name, container: pilotContainer})
	}
	for _, port := range ports {
		var keep bool
		switch {
		case port.daemon != "":
			_, keep = p.daemons.Running(port.daemon)
		case port.node > 0:
			keep = true // whether it is used on another node is not seen from here
		default:
			_, err := enter.Find(containerdState(p.dir), cluster.Namespace, port.pod, port.container)
			keep = err == nil
		}
		if _, err := statedir.ChoosePort(p.settings.Ports, port.name, p.dir.ID(), keep, statedir.Free); err != nil {
			return err
		}
	}
	return nil
}

// startAll does as much as possible at the same time: building the cluster's components and making images take long
// when nothing is cached.
func (p *pool) startAll(ctx context.Context) error {
	if err := p.startRegistry(ctx); err != nil {
		return err
	}
	cold, coldCtx := errgroup.WithContext(ctx)
	cold.Go(func() error { return p.startCluster(coldCtx) })
	cold.Go(func() error { return p.makeImages(coldCtx) })
	cold.Go(func() error { return p.progress.step(coldCtx, "web server", p.startWeb) })
	cold.Go(func() error {
		return p.progress.step(coldCtx, "kubectl", func(ctx context.Context) (err error) {
			p.kubectl, err = cluster.Kubectl(ctx, p.store, p.log)
			return err
		})
	})
	if err := cold.Wait(); err != nil || p.clusterOnly {
		return err
	}
	return p.startPods(ctx)
}

func (p *pool) startRegistry(ctx context.Context) error {
	argv := append([]string{p.dir.Path("bin", "pool"), registryVerb}, registryListens(p.settings)...)
	_, err := p.daemons.Start(ctx, daemon.Spec{Name: registryVerb, Args: append(argv, p.registryStore().Dir)})
	return err
}

func (p *pool) startWeb(ctx context.Context) error {
	return webServer(p.dir, p.settings).Start(ctx, p.daemons, p.store, p.log)
}

func webServer(dir statedir.Dir, settings statedir.Settings) web.Server {
	return web.Server{Dir: dir.Path("web"), Logs: dir.Path("log"), Public: dir.Path("home", publicDir), Ports: settings.Ports}
}

func (p *pool) registryStore() image.Store { return image.Store{Dir: p.dir.Path("registry")} }

// startCluster brings the cluster up, with the objects that a controller manager would have made.
func (p *pool) startCluster(ctx context.Context) error {
	n := &p.node
	if err := n.PKI.Make(n.Name, append(podnet.Services(), p.settings.Address)...); err != nil {
		return err
	}
	if err := n.PKI.Kubeconfig(adminConfig(p.dir), cluster.Admin, n.Server()); err != nil {
		return err
	}
	api, err := cluster.NewAPI(n.Server(), n.PKI, cluster.Admin)
	if err != nil {
		return err
	}
	p.api = api
	if n.PodNetwork, err = p.startNetwork(ctx); err != nil {
		return err
	}
	if n.PodNetwork != nil {
		if n.NetworkPrograms, err = p.networkPrograms(ctx); err != nil {
			return err
		}
	}
	if p.settings.Audit {
		n.AuditPolicy = cluster.FullAudit
	}
	n.PauseImage = p.repo("pause") + ":1"
	for _, c := range p.components() {
		err := p.progress.step(ctx, "building "+c.Family, func(ctx context.Context) error {
			dir, err := c.Build(ctx, p.store, p.log)
			switch c.Family {
			case cluster.Kubernetes:
				n.KubernetesDir = dir
			case cluster.Controllers:
				n.ControllersDir = dir
			default:
				n.EtcdDir = dir
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if n.ContainerdDir, err = cluster.ContainerdPrograms(ctx, p.settings.Containerd, p.store, p.log); err != nil {
		return err
	}
	for _, s := range []struct {
		name  string
		start func(context.Context) error
	}{
		{cluster.Etcd, n.StartEtcd},
		{cluster.Containerd, n.StartContainerd},
		{cluster.APIServer, func(ctx context.Context) error { return n.StartAPIServer(ctx, api) }},
		{cluster.Kubelet, func(ctx context.Context) error { return n.StartKubelet(ctx, api) }},
		{gpuDaemon, p.startGPUs},
		{"namespace", p.applyBase},
		{"controllers", p.bringControllers},
	} {
		if err := p.progress.step(ctx, s.name, s.start); err != nil {
			return err
		}
	}
	return nil
}

// bringControllers starts controller manager and scheduler, or stops them if they are not wanted any more.
func (p *pool) bringControllers(ctx context.Context) error {
	if p.settings.Controllers {
		return p.node.StartControllers(ctx, p.api)
	}
	for _, name := range []string{cluster.ControllerManager, cluster.Scheduler} {
		if err := p.daemons.Stop(ctx, name, 5*time.Second); err != nil {
			return err
		}
	}
	return nil
}

// applyBase makes the namespace, what a controller manager puts into one, and the pool's password.
func (p *pool) applyBase(ctx context.Context) error {
	ca, err := os.ReadFile(p.node.PKI.Path("ca.crt"))
	if err != nil {
		return fmt.Errorf("reading the authority's certificate: %w", err)
	}
	password, err := p.password()
	if err != nil {
		return err
	}
	object := func(kind, name string, more map[string]any) cluster.Object {
		o := cluster.Object{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	return cluster.Poll(ctx, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		for _, o := range []cluster.Object{
			object("Namespace", cluster.Namespace, nil),
			submitRuntime(),
			object("ServiceAccount", "default", nil),
			object("ConfigMap", "kube-root-ca.crt", map[string]any{"data": map[string]any{"ca.crt": string(ca)}}),
			object("Secret", "glidein-credentials", map[string]any{"stringData": map[string]any{"pool_password": password}}),
		} {
			if err := p.api.Apply(ctx, o); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// password is the pool's password, the same for the life of the state directory.
func (p *pool) password() (string, error) {
	path := p.dir.Path("pool_password")
	text, err := os.ReadFile(path)
	if err == nil {
		return string(text), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the pool's password: %w", err)
	}
	password := rand.Text()
	return password, statedir.WriteFile(path, []byte(password), 0o600)
}
