package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/enter"
)

// How long a payload container may take to run by itself, as one does that a job is being bound to, and with an image
// that the node has.
const (
	byItself = 10 * time.Second
	freshly  = 30 * time.Second
)

// awaken makes sure that the kubelet acts on changes of a pod that runs otherwise, and returns whether it does. A pull that
// hangs keeps a kubelet from that, and the pod's status does not show it. Payload containers that do not run get an image
// that the node has, under another name than jobs and manifest use: with a kubelet that acts they run soon.
func (p *pool) awaken(ctx context.Context, plan plan, live cluster.Object) (bool, error) {
	var payloads []string
	spec := child(live, "spec")
	for _, c := range containers(spec) {
		if name, _ := c["name"].(string); isPayload(name) {
			payloads = append(payloads, name)
		}
	}
	stopped := p.awaitRunning(ctx, plan.pod, payloads, byItself)
	if len(stopped) == 0 || ctx.Err() != nil {
		return true, ctx.Err()
	}
	changes := map[string][]any{}
	for _, name := range stopped {
		in := "containers"
		if isInit(spec, name) {
			in = "initContainers"
		}
		changes[in] = append(changes[in], map[string]any{"name": name, "image": p.repo("debian") + ":latest"})
	}
	patch := cluster.Object{"spec": changes}
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s", cluster.Namespace, plan.pod)
	if err := p.api.Do(ctx, http.MethodPatch, path, "application/strategic-merge-patch+json", patch, nil); err != nil {
		return false, fmt.Errorf("giving the pod %s an image that the node has: %w", plan.pod, err)
	}
	if stopped = p.awaitRunning(ctx, plan.pod, stopped, freshly); len(stopped) == 0 || ctx.Err() != nil {
		return true, ctx.Err()
	}
	p.progress.print("the kubelet does not act on changes of the pod %s; starting it again", plan.pod)
	if err := p.restartKubelet(ctx); err != nil {
		return false, err
	}
	return len(p.awaitRunning(ctx, plan.pod, stopped, freshly)) == 0, ctx.Err()
}

// awaitRunning waits until the runtime runs these containers, for so long at most, and returns those that it does not.
func (p *pool) awaitRunning(ctx context.Context, pod string, names []string, most time.Duration) []string {
	var stopped []string
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	_ = cluster.Poll(ctx, 100*time.Millisecond, func(context.Context) (bool, error) {
		stopped = nil
		for _, name := range names {
			if _, err := enter.Find(containerdState(p.dir), cluster.Namespace, pod, name); err != nil {
				stopped = append(stopped, name)
			}
		}
		return len(stopped) == 0, nil
	})
	return stopped
}

// deletePod deletes a pod and waits until it is gone, whatever keeps it. A kubelet does not break off a pull that hangs
// when its pod is deleted (docs/developer/kubelet-rules.md); another kubelet does.
func (p *pool) deletePod(ctx context.Context, name string, grace int) error {
	err := p.api.DeletePod(ctx, name, grace)
	if !errors.Is(err, cluster.ErrStays) {
		return err
	}
	p.progress.print("pod %s: %v; starting the kubelet again", name, cluster.ErrStays)
	if err := p.restartKubelet(ctx); err != nil {
		return err
	}
	err = p.api.DeletePod(ctx, name, grace)
	if !errors.Is(err, cluster.ErrStays) {
		return err
	}
	p.progress.print("pod %s: %v; removing it by force", name, cluster.ErrStays)
	return p.api.ForcePod(ctx, name)
}

// restartKubelet replaces the kubelet. Containers keep running.
func (p *pool) restartKubelet(ctx context.Context) error {
	p.kubelet.Lock()
	defer p.kubelet.Unlock()
	if err := p.daemons.Stop(ctx, cluster.Kubelet, 10*time.Second); err != nil {
		return err
	}
	return p.node.StartKubelet(ctx, p.api)
}
