// Package controlplane starts the cluster's API server and etcd without a node, for measurements that need no container,
// and KWOK in place of kubelets. It uses what integration/pool uses, in a state directory of its own.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/daemon"
	"podstarter/integration/pool/internal/statedir"
)

// Namespace is that of pilots.
const Namespace = cluster.Namespace

// Object is a Kubernetes object as JSON has it.
type Object = cluster.Object

// Names of the processes.
const (
	APIServer = cluster.APIServer
	Etcd      = cluster.Etcd
	KWOK      = "kwok"
)

// ControlPlane is one that runs.
type ControlPlane struct {
	api     *cluster.API
	node    cluster.Node
	dir     statedir.Dir
	store   cache.Cache
	kubectl string
	log     io.Writer
}

// Exec must be the first call of a program that uses this package: it becomes a daemon if the arguments say so.
func Exec() {
	if len(os.Args) > 1 && os.Args[1] == daemon.Verb {
		fmt.Fprintln(os.Stderr, daemon.Exec(os.Args[2:]))
		os.Exit(1)
	}
}

// auditMegabytes keeps a whole measurement in one file.
const auditMegabytes = 4096

// Up starts a control plane in the directory of that name below integration/, where none may run. Its etcd waits for the
// disk, and the API server logs all requests. log takes the output of builds.
func Up(ctx context.Context, name string, log io.Writer) (*ControlPlane, error) {
	dir, err := statedir.Find()
	if err != nil {
		return nil, err
	}
	dir.Root = dir.Source("integration", name)
	store, err := cache.User()
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{dir: dir, store: store, log: log}
	if err := c.clear(ctx); err != nil {
		return nil, err
	}
	ports := map[string]int{}
	for _, name := range []string{Etcd, "etcd-peer", APIServer, KWOK} {
		if _, err := statedir.ChoosePort(ports, name, dir.ID(), false, statedir.Free); err != nil {
			return nil, err
		}
	}
	c.node = cluster.Node{
		State: dir, Daemons: c.daemons(), PKI: cluster.PKI{Dir: dir.Path("pki")}, Name: "none",
		Settings: statedir.Settings{Ports: ports}, SyncEtcd: true, AuditPolicy: cluster.FullAudit, AuditLogMegabytes: auditMegabytes,
	}
	return c, c.start(ctx)
}

func (c *ControlPlane) daemons() daemon.Set {
	return daemon.Set{Records: c.dir.Path("run"), Logs: c.dir.Path("log")}
}

// clear ends what an interrupted run left, and removes its files.
func (c *ControlPlane) clear(ctx context.Context) error {
	for _, name := range []string{KWOK, ControllerManager, Scheduler, APIServer, Etcd} {
		if err := c.daemons().Stop(ctx, name, 10*time.Second); err != nil {
			return err
		}
	}
	return os.RemoveAll(c.dir.Root)
}

// Down ends everything and removes its files.
func (c *ControlPlane) Down(ctx context.Context) error { return c.clear(ctx) }

func (c *ControlPlane) start(ctx context.Context) error {
	n := &c.node
	if err := n.PKI.Make(n.Name); err != nil {
		return err
	}
	if err := n.PKI.Kubeconfig(c.kubeconfig(), cluster.Admin, n.Server()); err != nil {
		return err
	}
	var err error
	if c.api, err = cluster.NewAPI(n.Server(), n.PKI, cluster.Admin); err != nil {
		return err
	}
	for _, component := range cluster.Components(c.components(), cluster.DefaultKubernetes) {
		dir, err := component.Build(ctx, c.store, c.log)
		if err != nil {
			return err
		}
		if component.Family == cluster.Kubernetes {
			n.KubernetesDir = dir
		} else {
			n.EtcdDir = dir
		}
	}
	if c.kubectl, err = cluster.Kubectl(ctx, c.store, c.log); err != nil {
		return err
	}
	if err := n.StartEtcd(ctx); err != nil {
		return err
	}
	if err := n.StartAPIServer(ctx, c.api); err != nil {
		return err
	}
	return c.makeNamespace(ctx)
}

func (c *ControlPlane) components() string { return c.dir.Source("integration", "components") }

func (c *ControlPlane) kubeconfig() string { return c.dir.Path("admin.kubeconfig") }

// makeNamespace makes the namespace of pilots. The API server is ready some time before it admits objects there.
func (c *ControlPlane) makeNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the API server takes no namespace within a minute"))
	defer cancel()
	return cluster.Poll(ctx, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		err := c.api.Apply(ctx, Object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": Namespace}})
		return err == nil, err
	})
}

// StartKWOK starts KWOK with this configuration: stages, and its own.
func (c *ControlPlane) StartKWOK(ctx context.Context, config string) error {
	dir, err := cluster.KWOK(c.components()).Build(ctx, c.store, c.log)
	if err != nil {
		return err
	}
	path := c.dir.Path("kwok.yaml")
	if err := statedir.WriteFile(path, []byte(config), 0o644); err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", c.node.Settings.Ports[KWOK])
	_, err = c.daemons().Start(ctx, daemon.Spec{Name: KWOK, Inputs: []string{config}, Args: []string{
		filepath.Join(dir, "kwok"), "--kubeconfig=" + c.kubeconfig(), "--config=" + path, "--server-address=" + address, "--manage-all-nodes=true",
		"--node-lease-duration-seconds=40",
	}})
	return err
}

// Server is the address of the API server.
func (c *ControlPlane) Server() string { return c.node.Server() }

// CA is the file with the certificate of the API server's authority.
func (c *ControlPlane) CA() string { return c.node.PKI.Path("ca.crt") }

// Path joins names to the directory of the control plane's files.
func (c *ControlPlane) Path(names ...string) string { return c.dir.Path(names...) }

// Source joins names to the root of the checkout.
func (c *ControlPlane) Source(names ...string) string { return c.dir.Source(names...) }

// AuditLog is the path of the log of all requests.
func (c *ControlPlane) AuditLog() string { return c.node.AuditLog() }

// PID is that of one of the processes; 0 if it does not run.
func (c *ControlPlane) PID(name string) int {
	r, ok := c.daemons().Running(name)
	if !ok {
		return 0
	}
	return r.PID
}

// Do sends one request as the administrator.
func (c *ControlPlane) Do(ctx context.Context, method, path, contentType string, in, out any) error {
	return c.api.Do(ctx, method, path, contentType, in, out)
}

// Create creates an object.
func (c *ControlPlane) Create(ctx context.Context, o Object) (Object, error) {
	return c.api.Create(ctx, o)
}

// Metrics are those of the API server and etcd, as they publish them.
func (c *ControlPlane) Metrics(ctx context.Context) (api, etcd string, err error) {
	if api, err = c.api.Text(ctx, "/metrics"); err != nil {
		return "", "", fmt.Errorf("reading the API server's metrics: %w", err)
	}
	if etcd, err = c.node.EtcdMetrics(ctx); err != nil {
		return "", "", fmt.Errorf("reading etcd's metrics: %w", err)
	}
	return api, etcd, nil
}

// ListPods returns the pilots' pods.
func (c *ControlPlane) ListPods(ctx context.Context, into any) error {
	return c.api.Do(ctx, http.MethodGet, "/api/v1/namespaces/"+Namespace+"/pods", "", nil, into)
}
