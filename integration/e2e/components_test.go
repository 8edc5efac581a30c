//go:build pool

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// TestComponents: whatever an admin adds to the glidein, the API server accepts it as a pod, and in a Job and a Deployment, which
// have what the component adds.
func TestComponents(t *testing.T) {
	oursOnly(t)
	class, err := os.ReadFile(filepath.Join(pool.Root, "deploy", "components", "priority", "class.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := pool.Kubectl(t.Context(), strings.NewReader(string(class)), "apply", "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if _, err := pool.Kubectl(context.Background(), nil, "delete", "priorityclass", "podstarter-glidein", "--ignore-not-found"); err != nil {
			t.Error(err)
		}
	})
	for component, adds := range map[string]string{ // a part of the pod's manifest as JSON
		"pull-secret":    `"imagePullSecrets"`,
		"tolerations":    `"tolerations"`,
		"node-affinity":  `"nodeAffinity"`,
		"priority":       `"priorityClassName": "podstarter-glidein"`,
		"cvmfs":          `"mountPath": "/cvmfs"`,
		"nfs":            `"nfs.example.org"`,
		"user-namespace": `"hostUsers": false`,
		"network-policy": `"app.kubernetes.io/component": "glidein"`,
		"openshift":      `"openshift.io/required-scc": "podstarter"`,
		"metrics":        `"prometheus.io/scrape"`,
		"events":         `"glidein-config`,
		"resize":         `"resize.podstarter/cpu"`,
	} {
		t.Run(component, func(t *testing.T) {
			c := "../components/" + component
			for kind, list := range map[string]string{
				"Pod":        c,
				"Job":        c + ", ../components/sidecars, ../components/one-role, ../components/job",
				"Deployment": c + ", ../components/one-role, ../components/deployment",
			} {
				objects := site(t, "resources: [../glidein]\ncomponents: ["+list+"]\n")
				text := inJSON(t, theOne(t, objects, kind))
				if strings.Contains(text, "internal.config.kubernetes.io") {
					t.Errorf("kustomize leaves notes of its own in a %s", kind)
				}
				if !strings.Contains(text, adds) {
					t.Errorf("the pod of a %s lacks %s", kind, adds)
				}
				for _, o := range objects {
					own := metadata(o)
					if own["namespace"] != nil {
						own["namespace"] = harness.Namespace
					}
					own["name"] = "component-dry-run"
					if out, err := pool.Kubectl(t.Context(), strings.NewReader(inJSON(t, o)), "create", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil {
						t.Errorf("the API server does not accept the %v of a %s: %v\n%s", o["kind"], kind, err, out)
					}
				}
			}
		})
	}
}

// TestComponentsInOrder: a component that changes the payload container fails where that has moved, rather than make a second one.
func TestComponentsInOrder(t *testing.T) {
	oursOnly(t)
	for _, component := range []string{"cvmfs", "nfs"} {
		dir := siteDir(t, "resources: [../glidein]\ncomponents: [../components/sidecars, ../components/"+component+"]\n")
		if out, err := pool.Kubectl(t.Context(), nil, "kustomize", dir); err == nil {
			t.Errorf("%s after the component for sidecars is accepted:\n%s", component, out)
		}
	}
}
