package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"podstarter/integration/pool/controlplane"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
)

// kubeletAccount makes the requests of kubelets that KWOK does not make.
const kubeletAccount = "kubelets"

// reader reads a pod before each update of its status, as kubelets do and KWOK does not.
type reader struct {
	client  *podapi.Client
	record  *record
	reading sync.WaitGroup
}

// newReader makes a client with a service account that may read pods. All kubelets share it: they, too, keep their
// connections.
func newReader(ctx context.Context, plane *controlplane.ControlPlane, r *record, ca []byte, anyPod pod) (*reader, error) {
	type m = map[string]any
	rbac := "rbac.authorization.k8s.io"
	for _, o := range []controlplane.Object{
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": m{"name": kubeletAccount}},
		{"apiVersion": rbac + "/v1", "kind": "Role", "metadata": m{"name": kubeletAccount},
			"rules": []m{{"apiGroups": []string{""}, "resources": []string{"pods"}, "verbs": []string{"get"}}}},
		{"apiVersion": rbac + "/v1", "kind": "RoleBinding", "metadata": m{"name": kubeletAccount},
			"roleRef":  m{"apiGroup": rbac, "kind": "Role", "name": kubeletAccount},
			"subjects": []m{{"kind": "ServiceAccount", "name": kubeletAccount, "namespace": controlplane.Namespace}}},
	} {
		if _, err := plane.Create(ctx, o); err != nil {
			return nil, fmt.Errorf("making the service account of kubelets: %w", err)
		}
	}
	token, err := plane.Token(ctx, kubeletAccount, "", "")
	if err != nil {
		return nil, err
	}
	dir := plane.Path("kubelets")
	if err := writeFiles(dir, token, ca); err != nil {
		return nil, err
	}
	client, err := podapi.New(options.Options{Server: plane.Server(), KubernetesDir: dir, PodName: anyPod.name, PodNamespace: controlplane.Namespace})
	return &reader{client: client, record: r}, err
}

// Times of the kubelet: stages.yaml has the same.
const (
	seenTime    = 20 * time.Millisecond
	runningTime = time.Second
	pullTime    = 5 * time.Second
)

// follow reads the pod as its kubelet does after a patch.
func (k *reader) follow(ctx context.Context, pod string, cold bool) {
	k.reading.Go(func() {
		pauses := []time.Duration{seenTime, runningTime}
		if cold {
			pauses[1] = pullTime
		}
		for _, pause := range pauses {
			wait(ctx, pause)
			if _, err := k.client.Of(pod).Get(ctx); err != nil {
				k.record.failed(fmt.Errorf("a kubelet reads a pod: %w", err))
			}
		}
	})
}
