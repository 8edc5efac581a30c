//go:build pool

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// site renders a kustomization of a site, in a folder beside those of deploy.
func site(t *testing.T, kustomization string) []map[string]any {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "deploy")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(pool.Root, "deploy"))); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "site")
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + kustomization
	if err := os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return render(t, own)
}

// theOne is the one object of a kind.
func theOne(t *testing.T, objects []map[string]any, kind string) map[string]any {
	t.Helper()
	var found map[string]any
	for _, o := range objects {
		if o["kind"] != kind {
			continue
		}
		if found != nil {
			t.Fatalf("there are several objects of kind %s", kind)
		}
		found = o
	}
	if found == nil {
		t.Fatalf("there is no object of kind %s", kind)
	}
	return found
}

func spec(o map[string]any) map[string]any { return o["spec"].(map[string]any) }

// template is the pod that a Job makes.
func template(job map[string]any) map[string]any {
	pod := spec(job)["template"].(map[string]any)
	metadata, _ := pod["metadata"].(map[string]any)
	metadata["name"] = job["metadata"].(map[string]any)["name"]
	pod["kind"], pod["apiVersion"] = "Pod", "v1"
	return pod
}

// TestOneRole: the component for pods with unknown names makes a Role that names
// none.
func TestOneRole(t *testing.T) {
	oursOnly(t)
	role := theOne(t, site(t, "resources: [../glidein]\ncomponents: [../components/one-role]\n"), "Role")
	want := []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get", "watch", "patch"}}}
	if diff := cmp.Diff(want, role["rules"]); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// TestNamePrefix: a site that gives all objects names of its own has a Role for its pod.
func TestNamePrefix(t *testing.T) {
	oursOnly(t)
	objects := site(t, "resources: [../glidein]\nnamePrefix: a-\nnameSuffix: -x\n")
	name := theOne(t, objects, "Pod")["metadata"].(map[string]any)["name"]
	if name != "a-glidein-x" {
		t.Errorf("the pod's name is %v", name)
	}
	rule := theOne(t, objects, "Role")["rules"].([]any)[0].(map[string]any)
	if diff := cmp.Diff([]any{name}, rule["resourceNames"]); diff != "" {
		t.Errorf("resourceNames (-want +got):\n%s", diff)
	}
}

// TestSidecarComponent: the payload containers become sidecars, behind the init container
// that gives them the wrapper. Nothing else changes.
func TestSidecarComponent(t *testing.T) {
	oursOnly(t)
	for _, c := range []struct{ before, after string }{
		{"resources: [../glidein]\n", "components: [../components/sidecars]\n"},
		{"resources: [../glidein-unshared]\n", "components: [../components/sidecars]\n"},
		{"resources: [../glidein]\ncomponents:\n- ../components/spares\n", "- ../components/sidecars\n- ../components/sidecars/spares\n"},
	} {
		want := theOne(t, site(t, c.before), "Pod")
		spec(want)["restartPolicy"] = "OnFailure"
		var stay []any
		for _, one := range spec(want)["containers"].([]any) {
			if !isPayload(one) {
				stay = append(stay, one)
				continue
			}
			one.(map[string]any)["restartPolicy"] = "Always"
			spec(want)["initContainers"] = append(spec(want)["initContainers"].([]any), one)
		}
		spec(want)["containers"] = stay
		if diff := cmp.Diff(want, theOne(t, site(t, c.before+c.after), "Pod")); diff != "" {
			t.Errorf("%s%s (-want +got):\n%s", c.before, c.after, diff)
		}
	}
}

// TestJobManifest: the Job's pod is the glidein with a sidecar, and no pod is left beside it.
func TestJobManifest(t *testing.T) {
	oursOnly(t)
	objects := rendered(t, "glidein-job")
	job := theOne(t, objects, "Job")
	want := theOne(t, site(t, "resources: [../glidein]\ncomponents: [../components/sidecars]\n"), "Pod")
	if diff := cmp.Diff(want["spec"], template(job)["spec"]); diff != "" {
		t.Errorf("the pod of the Job (-want +got):\n%s", diff)
	}
	if slices.ContainsFunc(objects, func(o map[string]any) bool { return o["kind"] == "Pod" }) {
		t.Error("there is a pod beside the Job")
	}
	if names := theOne(t, objects, "Role")["rules"].([]any)[0].(map[string]any)["resourceNames"]; names != nil {
		t.Errorf("the Role names pods: %v", names)
	}
}
