package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"podstarter/integration/pool/controlplane"
)

// payloadName is the payload container of deploy/glidein; copies have numbers behind it.
const payloadName = "payload"

// account is the service account of pilots.
const account = "glidein"

// pod is the pod of a simulated pilot.
type pod struct{ name, uid string }

// creators is how many pods are created at the same time.
const creators = 8

// startPods makes nodes and the pilots' pods, and waits until all run.
func startPods(ctx context.Context, plane *controlplane.ControlPlane, l load) ([]pod, error) {
	template, err := plane.Pilots(ctx)
	if err != nil {
		return nil, err
	}
	if err := plane.StartKWOK(ctx, stages); err != nil {
		return nil, err
	}
	for i := range l.nodes {
		node := controlplane.Object{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": nodeName(i)}}
		if _, err := plane.Create(ctx, node); err != nil {
			return nil, fmt.Errorf("making a node: %w", err)
		}
	}
	pods := make([]pod, l.pilots)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(creators)
	for i := range pods {
		g.Go(func() error {
			o, err := podOf(template, i, l)
			if err != nil {
				return err
			}
			made, err := plane.Create(gctx, o)
			if err != nil {
				return fmt.Errorf("making a pod: %w", err)
			}
			pods[i] = pod{name: made.String("metadata", "name"), uid: made.String("metadata", "uid")}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := plane.AwaitPolicy(ctx, account, pods[0].name, pods[0].uid); err != nil {
		return nil, err
	}
	return pods, awaitRunning(ctx, plane, len(pods))
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// podOf is the pod of a pilot: that of deploy/glidein on a node, with as many payload containers as slots.
func podOf(template controlplane.Object, i int, l load) (controlplane.Object, error) {
	text, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("copying the pod of deploy/glidein: %w", err)
	}
	var o controlplane.Object
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, fmt.Errorf("copying the pod of deploy/glidein: %w", err)
	}
	meta, _ := o["metadata"].(map[string]any)
	spec, _ := o["spec"].(map[string]any)
	all, _ := spec["containers"].([]any)
	if meta == nil || len(all) == 0 {
		return nil, errors.New("the pod of deploy/glidein has no containers")
	}
	meta["name"] = fmt.Sprintf("pilot-%05d", i)
	spec["nodeName"] = nodeName(i % l.nodes)
	payload, _ := all[len(all)-1].(map[string]any)
	if payload["name"] != payloadName {
		return nil, fmt.Errorf("the last container of deploy/glidein is not %s", payloadName)
	}
	for n := 1; n < l.slots; n++ {
		more := maps.Clone(payload)
		more["name"] = containerName(n)
		all = append(all, more)
	}
	spec["containers"] = all
	return o, nil
}

// containerName is that of the payload container of a slot, counted from 0.
func containerName(slot int) string {
	if slot == 0 {
		return payloadName
	}
	return fmt.Sprintf("%s-%d", payloadName, slot+1)
}

// podList is what is read of all pods.
type podList struct {
	Items []struct {
		Metadata struct{ Name string }
		Spec     struct {
			Containers []struct{ Name, Image string }
		}
		Status struct {
			Phase             string
			ContainerStatuses []struct{ Name, Image string }
		}
	}
}

// awaitRunning waits until so many pods run.
func awaitRunning(ctx context.Context, plane *controlplane.ControlPlane, want int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Minute, errors.New("not all pods run after ten minutes"))
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if plane.PID(controlplane.KWOK) == 0 {
			return fmt.Errorf("KWOK has ended; see %s", plane.Path("log", "kwok.log"))
		}
		var pods podList
		if err := plane.ListPods(ctx, &pods); err != nil {
			return fmt.Errorf("waiting for the pods: %w", err)
		}
		running := 0
		for _, p := range pods.Items {
			if p.Status.Phase == "Running" {
				running++
			}
		}
		if running >= want {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d pods run: %w", running, want, context.Cause(ctx))
		}
	}
}

// behind is the number of payload containers whose status does not show the image of their last job, after a while in which
// KWOK could catch up: with many, its share of the load was not measured.
func behind(ctx context.Context, plane *controlplane.ControlPlane) (int, error) {
	const patience = 15
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		var pods podList
		if err := plane.ListPods(ctx, &pods); err != nil {
			return 0, fmt.Errorf("looking at the pods: %w", err)
		}
		late := 0
		for _, p := range pods.Items {
			shown := map[string]string{}
			for _, s := range p.Status.ContainerStatuses {
				shown[s.Name] = s.Image
			}
			for _, c := range p.Spec.Containers {
				if strings.HasPrefix(c.Name, payloadName) && shown[c.Name] != c.Image {
					late++
				}
			}
		}
		if late == 0 || n == patience {
			return late, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return late, context.Cause(ctx)
		}
	}
}
