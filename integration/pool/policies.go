package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"podstarter/integration/pool/internal/cluster"
)

// refusedImages begins the names of images of the pool's registry that the policy of deploy/policy refuses here, so
// that a test can ask for one.
const refusedImages = "not-on-this-cluster/"

// applyPolicies makes the cluster-wide objects of deploy/policy, so that everything here runs under them.
func (p *pool) applyPolicies(ctx context.Context) error {
	objects, err := cluster.Render(ctx, p.kubectl, adminConfig(p.dir), p.dir.Source("deploy", "policy"))
	if err != nil {
		return err
	}
	if !refuse(objects, registryAddress(p.settings)+"/"+refusedImages) {
		return fmt.Errorf("no policy of deploy/policy has the variable refused with prefixes of refused images")
	}
	for _, o := range objects {
		if err := p.api.Apply(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// refuse adds a prefix to the refused images, and reports whether a policy has such a list.
func refuse(objects []cluster.Object, prefix string) bool {
	found := false
	for _, o := range objects {
		for _, v := range list(child(o, "spec"), "variables") {
			if v["name"] == "refused" {
				v["expression"] = "['" + prefix + "']"
				found = true
			}
		}
	}
	return found
}

// waitPolicies waits until each policy denies a pilot what it should: the API server compiles policies in the background,
// some time after it has stored them.
func (p *pool) waitPolicies(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("the policies of deploy/policy are not in force after a minute"))
	defer cancel()
	pod, err := p.api.Get(ctx, "Pod", glideinPod)
	if err != nil {
		return err
	}
	account := pod.String("spec", "serviceAccountName")
	payloads := "containers"
	if p.settings.Sidecars {
		payloads = "initContainers"
	}
	bound := cluster.BoundAccount{Namespace: cluster.Namespace, Name: account, Pod: glideinPod, PodUID: pod.String("metadata", "uid")}
	for policy, patch := range map[string]cluster.Object{
		"podstarter-pilot": {"metadata": map[string]any{"labels": map[string]any{"a-pilot-may": "not-do-this"}}},
		"podstarter-images": {"spec": map[string]any{payloads: []any{map[string]any{
			"name": payloadName, "image": registryAddress(p.settings) + "/" + refusedImages + "image:1"}}}},
	} {
		err := cluster.Poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
			err := p.api.TryPatch(ctx, bound, patch)
			if err == nil {
				return false, fmt.Errorf("%s allows what it should deny", policy)
			}
			return strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'"), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
