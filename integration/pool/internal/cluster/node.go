package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"podstarter/integration/pool/internal/daemon"
	"podstarter/integration/pool/internal/podnet"
	"podstarter/integration/pool/internal/statedir"
	"podstarter/integration/pool/internal/tool"
)

// Node is everything that the daemons of the cluster need to know.
type Node struct {
	State    statedir.Dir
	Daemons  daemon.Set
	PKI      PKI
	Name     string
	Settings statedir.Settings
	// EtcdDir and KubernetesDir hold the programs.
	EtcdDir, KubernetesDir string
	// ControllersDir holds controller manager and scheduler, if there are to be any.
	ControllersDir string
	// ContainerdDir holds containerd, its shim and runc; if it is empty, they are those of the machine.
	ContainerdDir string
	// PauseImage is the image that holds a pod's namespaces.
	PauseImage string
	// PodNetwork is the one of all pods; nil if they have the machine's.
	PodNetwork *podnet.Network
	// NetworkPrograms are those that make it.
	NetworkPrograms podnet.Programs
	Cgroups         CgroupTree
	// SyncEtcd says that etcd waits for the disk, as in production. Tests need no data that outlives a crash.
	SyncEtcd bool
	// AuditPolicy says what the API server logs; "" is PilotAudit. AuditLogMegabytes is when it begins another file.
	AuditPolicy       string
	AuditLogMegabytes int
}

// Names of the daemons.
const (
	Etcd       = "etcd"
	APIServer  = "kube-apiserver"
	Containerd = "containerd"
	Kubelet    = "kubelet"
)

// Registry is the name of the registry's port.
const Registry = "registry"

// loopback is where a machine reaches its own daemons.
const loopback = "127.0.0.1"

// Server is the API server's base address.
func (n Node) Server() string {
	return fmt.Sprintf("https://%s:%d", cmp.Or(n.Settings.First, loopback), n.Settings.Ports[APIServer])
}

// ContainerdSocket is where containerd listens.
func (n Node) ContainerdSocket() string { return n.State.Run("containerd.sock") }

// StartEtcd starts etcd and waits until it answers.
func (n Node) StartEtcd(ctx context.Context) error {
	client := n.etcdClient()
	peer := fmt.Sprintf("http://127.0.0.1:%d", n.Settings.Ports["etcd-peer"])
	args := []string{
		filepath.Join(n.EtcdDir, "etcd"), "--data-dir=" + n.State.Path("etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
		"--log-level=warn",
	}
	if !n.SyncEtcd {
		args = append(args, "--unsafe-no-fsync")
	}
	return n.bring(ctx, daemon.Spec{Name: Etcd, Args: args}, func(ctx context.Context) error { return n.ready(ctx, Etcd, client+"/health", http.DefaultClient) })
}

func (n Node) etcdClient() string { return fmt.Sprintf("http://127.0.0.1:%d", n.Settings.Ports[Etcd]) }

// EtcdMetrics returns etcd's metrics as it publishes them.
func (n Node) EtcdMetrics(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.etcdClient()+"/metrics", nil)
	if err != nil {
		return "", fmt.Errorf("asking etcd for its metrics: %w", err)
	}
	return text(http.DefaultClient, req)
}

// bring starts a daemon, unless it runs, and waits until it is ready. One that runs and does not become ready hangs, and
// is replaced.
func (n Node) bring(ctx context.Context, spec daemon.Spec, ready func(context.Context) error) error {
	started, err := n.Daemons.Start(ctx, spec)
	if err != nil {
		return err
	}
	err = ready(ctx)
	if err == nil || started || ctx.Err() != nil {
		return err
	}
	if err := n.Daemons.Stop(ctx, spec.Name, 5*time.Second); err != nil {
		return err
	}
	if _, err := n.Daemons.Start(ctx, spec); err != nil {
		return err
	}
	return ready(ctx)
}

// StartAPIServer starts the API server and waits until it is ready.
func (n Node) StartAPIServer(ctx context.Context, api *API) error {
	issuer := "https://kubernetes.default.svc"
	bind, advertise := loopback, loopback
	if n.Settings.Address != "" {
		bind, advertise = "0.0.0.0", n.Settings.Address
	}
	policy, rules := n.State.Path("audit-policy.yaml"), cmp.Or(n.AuditPolicy, PilotAudit)
	if err := statedir.WriteFile(policy, []byte(rules), 0o644); err != nil {
		return err
	}
	args := []string{
		filepath.Join(n.KubernetesDir, "kube-apiserver"),
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", n.Settings.Ports[Etcd]),
		"--bind-address=" + bind, "--advertise-address=" + advertise, fmt.Sprintf("--secure-port=%d", n.Settings.Ports[APIServer]),
		"--cert-dir=" + n.PKI.Dir,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=" + n.PKI.Path("ca.crt"),
		"--tls-cert-file=" + n.PKI.Path("apiserver.crt"), "--tls-private-key-file=" + n.PKI.Path("apiserver.key"),
		"--service-account-issuer=" + issuer, "--api-audiences=" + issuer,
		"--service-account-key-file=" + n.PKI.Path("sa.pub"), "--service-account-signing-key-file=" + n.PKI.Path("sa.key"),
		"--kubelet-client-certificate=" + n.PKI.Path("kubelet-client.crt"), "--kubelet-client-key=" + n.PKI.Path("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--audit-policy-file=" + policy, "--audit-log-path=" + n.AuditLog(), fmt.Sprintf("--audit-log-maxsize=%d", cmp.Or(n.AuditLogMegabytes, 100)), "--audit-log-maxbackup=1",
	}
	if n.Settings.StockDocker || n.Settings.StockApptainer {
		args = append(args, "--allow-privileged=true")
	}
	if gates := n.Settings.FeatureGates.String(); gates != "" {
		args = append(args, "--feature-gates="+gates)
	}
	return n.bring(ctx, daemon.Spec{Name: APIServer, Args: args, Inputs: []string{rules}}, func(ctx context.Context) error { return n.ready(ctx, APIServer, n.Server()+"/readyz", api.client) })
}

// ready waits until a daemon answers 200, or names its log in the error.
func (n Node) ready(ctx context.Context, name, url string, client *http.Client) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, fmt.Errorf("%s does not become ready in two minutes", name))
	defer cancel()
	err := Poll(ctx, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		if _, ok := n.Daemons.Running(name); !ok {
			cancel()
			return false, fmt.Errorf("%s has ended", name)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK, fmt.Errorf("it answers %s", resp.Status)
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w; see %s", name, err, n.Daemons.Log(name))
	}
	return nil
}

// StartKubelet starts the kubelet and waits until its node is ready.
func (n Node) StartKubelet(ctx context.Context, api *API) error {
	if err := n.Cgroups.Make(); err != nil {
		return err
	}
	kubeconfig := n.State.Path("kubelet.kubeconfig")
	if err := n.PKI.Kubeconfig(kubeconfig, ThisNode, n.Server()); err != nil {
		return err
	}
	config, err := json.MarshalIndent(n.kubeletConfig(), "", "\t")
	if err != nil {
		return fmt.Errorf("writing the kubelet's configuration: %w", err)
	}
	path := n.State.Path("kubelet.json")
	if err := statedir.WriteFile(path, config, 0o644); err != nil {
		return err
	}
	_, err = n.Daemons.Start(ctx, daemon.Spec{Name: Kubelet, Inputs: []string{string(config)}, Args: []string{
		filepath.Join(n.KubernetesDir, "kubelet"),
		"--config=" + path, "--kubeconfig=" + kubeconfig, "--hostname-override=" + n.Name, "--node-ip=" + n.Settings.NodeIP,
		"--root-dir=" + n.State.Path("kubelet"), "--cert-dir=" + n.State.Path("kubelet-pki"), "--v=2",
	}})
	if err != nil {
		return err
	}
	return n.waitNode(ctx, api)
}

func (n Node) waitNode(ctx context.Context, api *API) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, fmt.Errorf("the node does not become ready in two minutes; see %s", n.Daemons.Log(Kubelet)))
	defer cancel()
	return Poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		if _, ok := n.Daemons.Running(Kubelet); !ok {
			cancel()
			return false, fmt.Errorf("the kubelet has ended; see %s", n.Daemons.Log(Kubelet))
		}
		var node struct {
			Status struct {
				Conditions []struct{ Type, Status, Message string }
			}
		}
		if err := api.Do(ctx, http.MethodGet, "/api/v1/nodes/"+n.Name, "", nil, &node); err != nil {
			return false, err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == "Ready" {
				return c.Status == "True", fmt.Errorf("the node is not ready: %s", c.Message)
			}
		}
		return false, nil
	})
}

// kubeletConfig is the pool's, with what the settings replace of it.
func (n Node) kubeletConfig() map[string]any {
	type m = map[string]any
	config := m{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": n.Settings.NodeIP, "port": n.Settings.Ports[Kubelet], "healthzPort": n.Settings.Ports["kubelet-healthz"],
		"authentication":           m{"x509": m{"clientCAFile": n.PKI.Path("ca.crt")}, "anonymous": m{"enabled": false}, "webhook": m{"enabled": true}},
		"authorization":            m{"mode": "Webhook"},
		"containerRuntimeEndpoint": "unix://" + n.ContainerdSocket(),
		"cgroupDriver":             "cgroupfs", "cgroupRoot": "/" + n.Cgroups.Name, "failCgroupV1": false, "failSwapOn": false,
		"enforceNodeAllocatable": []string{}, "makeIPTablesUtilChains": false,
		// Without it the kubelet does not look at disks, and its eviction manager fails at each look at anything. A guest has a
		// disk of its own; a host's is the business of others.
		"localStorageCapacityIsolation": n.Cgroups.Unified(),
		// A test machine may have little room left; an eviction would help nobody here.
		"evictionHard":                m{"memory.available": "50Mi", "nodefs.available": "1%", "nodefs.inodesFree": "0%", "imagefs.available": "1%"},
		"imageGCHighThresholdPercent": 100,
		"podLogsDir":                  n.State.Path("log", "pods"),
		"volumePluginDir":             n.State.Path("kubelet", "volume-plugins"),
		"resolvConf":                  "",
		"registryPullQPS":             0,
		// A hanging registry delays only the pod that pulls from it.
		"serializeImagePulls": false,
	}
	if len(n.Settings.FeatureGates) > 0 {
		config["featureGates"] = n.Settings.FeatureGates
	}
	maps.Copy(config, n.Settings.Kubelet)
	return config
}

// Ctr runs containerd's own client.
func (n Node) Ctr(ctx context.Context, args ...string) (string, error) {
	out, err := tool.Output(ctx, tool.Command{Args: append([]string{"ctr", "--address", n.ContainerdSocket(), "--namespace", "k8s.io"}, args...)})
	return strings.TrimSpace(out), err
}
