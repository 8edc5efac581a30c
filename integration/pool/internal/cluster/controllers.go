package cluster

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"podstarter/integration/pool/internal/daemon"
)

// Controllers is the family with what acts on objects by itself: the controller manager and the scheduler. Most pools need neither, and
// are faster without: their pods name a node and have no owner.
const Controllers = "kubernetes-controllers"

// Names of their daemons, of their ports, and of their certificates.
const (
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

// ControllersOf is the component with both, given the directory of modules and the version of Kubernetes.
func ControllersOf(dir, kubernetes string) Component {
	return Component{
		Family: Controllers, Dir: filepath.Join(dir, Kubernetes, kubernetes), Module: "k8s.io/kubernetes",
		Packages:  []string{"k8s.io/kubernetes/cmd/" + ControllerManager, "k8s.io/kubernetes/cmd/" + Scheduler},
		VersionIn: "k8s.io/component-base/version",
	}
}

// controllers are those that Jobs, Deployments and StatefulSets need, with their pods, budgets and quotas, and those without which a namespace or a
// node is not what they expect. None of them evicts pods from a node that is away for a while: tests stop kubelets.
var controllers = []string{
	"job-controller", "ttl-after-finished-controller",
	"deployment-controller", "replicaset-controller",
	"statefulset-controller",
	// They bind claims to volumes that are there; nothing makes volumes here.
	"persistentvolume-binder-controller", "persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller",
	"disruption-controller", "resourcequota-controller",
	"garbage-collector-controller", "pod-garbage-collector-controller",
	"namespace-controller", "serviceaccount-controller", "root-ca-certificate-publisher-controller",
	"node-lifecycle-controller", // it takes the taint away that keeps pods from a node that is new
}

// StartControllers starts the controller manager and the scheduler, and waits until both answer.
func (n Node) StartControllers(ctx context.Context, api *API) error {
	err := n.startController(ctx, api, ControllerManager,
		"--controllers="+strings.Join(controllers, ","),
		// Each controller has the rights of its own role, as it has them elsewhere.
		"--use-service-account-credentials=true",
		"--root-ca-file="+n.PKI.Path("ca.crt"))
	if err != nil {
		return err
	}
	return n.startController(ctx, api, Scheduler)
}

// startController starts one of the two. There is no other to elect a leader from.
func (n Node) startController(ctx context.Context, api *API, name string, more ...string) error {
	if err := n.PKI.MakeController(name); err != nil {
		return err
	}
	kubeconfig := n.State.Path(name + ".kubeconfig")
	if err := n.PKI.Kubeconfig(kubeconfig, name, n.Server()); err != nil {
		return err
	}
	port := n.Settings.Ports[name]
	args := append([]string{
		filepath.Join(n.ControllersDir, name), "--kubeconfig=" + kubeconfig, "--leader-elect=false",
		"--bind-address=" + loopback, fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + n.PKI.Path(name+".crt"), "--tls-private-key-file=" + n.PKI.Path(name+".key"),
	}, more...)
	if gates := n.Settings.FeatureGates.String(); gates != "" {
		args = append(args, "--feature-gates="+gates)
	}
	return n.bring(ctx, daemon.Spec{Name: name, Args: args}, func(ctx context.Context) error {
		return n.ready(ctx, name, fmt.Sprintf("https://%s:%d/healthz", loopback, port), api.client)
	})
}

// MakeController makes, once for the life of the directory, the certificate with which the controller manager or the scheduler speaks to the API
// server and answers on the loopback. Kubernetes knows their rights by their names.
func (p PKI) MakeController(name string) error {
	return p.issueOnce(name, x509.Certificate{
		Subject:     pkix.Name{CommonName: "system:" + name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	})
}
