package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/pool/internal/cluster"
)

func TestFaultsPlan(t *testing.T) {
	p := testPool(4)
	p.settings.FaultsAPI = 77
	p.settings.Ports["faults-2"] = 5
	type m = map[string]any
	objects := append(glidein(), cluster.Object{"kind": "RoleBinding", "metadata": m{"name": "glidein"}, "roleRef": m{"name": "glidein"}})
	objects[1]["rules"] = []any{m{"resourceNames": []any{"glidein"}}}
	pod, others, err := p.edited(objects, p.faultsPlan("faults-2"))
	if err != nil {
		t.Fatal(err)
	}
	spec := child(pod, "spec")
	if got := len(list(spec, "containers")); got != 2 || pod.String("metadata", "name") != "faults-2" {
		t.Errorf("pod %s with %d containers, want faults-2 with pilot and one payload", pod.String("metadata", "name"), got)
	}
	if got := list(list(spec, "containers")[0], "env"); got[len(got)-1]["value"] != "77" {
		t.Errorf("it looks for the API server at %v", got)
	}
	if got := cluster.Object(list(spec, "volumes")[1]).String("configMap", "name"); got != "faults-2-config" {
		t.Errorf("it reads the configuration %s", got)
	}
	var names []string
	for _, o := range others {
		names = append(names, o.String("kind")+"/"+o.String("metadata", "name"))
		switch o.String("kind") {
		case "Role":
			if diff := cmp.Diff([]any{"faults-2"}, list(o, "rules")[0]["resourceNames"]); diff != "" {
				t.Error(diff)
			}
		case "RoleBinding":
			if got := o.String("roleRef", "name"); got != "glidein-faults-2" {
				t.Errorf("the role bound is %s", got)
			}
		case "ConfigMap":
			if got := o.String("data", "90-test.conf"); !strings.Contains(got, "NUM_SLOTS = 1\n") || !strings.Contains(got, "SHARED_PORT_PORT = 5\n") {
				t.Errorf("its configuration is\n%s", got)
			}
		}
	}
	if diff := cmp.Diff([]string{"ServiceAccount/glidein", "Role/glidein-faults-2", "ConfigMap/faults-2-config", "RoleBinding/glidein-faults-2"}, names); diff != "" {
		t.Error(diff)
	}
}
