//go:build pool

package pulls

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestHungPullerIsReplaced: an operator deletes a puller whose pull hangs by force, and makes
// it again. The image that waits for it comes, although the first pull still hangs.
func TestHungPullerIsReplaced(t *testing.T) {
	next := behindRemoved(t, "stuck")
	replace(t, "glidein-puller")
	mustRun(t, next)
}

// replace deletes a puller by force, and makes it again with the image that it began with.
func replace(t *testing.T, pod string) {
	t.Helper()
	text, err := pool.Kubectl(t.Context(), nil, "get", "pod", pod, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       map[string]any `json:"spec"`
	}
	if err := json.Unmarshal([]byte(text), &manifest); err != nil {
		t.Fatal(err)
	}
	manifest.Metadata = map[string]any{"name": pod, "namespace": manifest.Metadata["namespace"], "labels": manifest.Metadata["labels"]}
	prepare := manifest.Spec["initContainers"].([]any)[0].(map[string]any)
	manifest.Spec["containers"].([]any)[0].(map[string]any)["image"] = prepare["image"]
	again, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		in   string
		argv []string
	}{
		{argv: []string{"delete", "pod", pod, "--force", "--grace-period=0", "--wait=false"}},
		{argv: []string{"wait", "--for=delete", "pod/" + pod, "--timeout=60s"}},
		{in: string(again), argv: []string{"create", "-f", "-"}},
		{argv: []string{"wait", "--for=condition=Ready", "pod/" + pod, "--timeout=60s"}},
	} {
		if out, err := pool.Kubectl(t.Context(), strings.NewReader(step.in), step.argv...); err != nil {
			t.Fatalf("%v: %v\n%s", step.argv, err, out)
		}
	}
}
