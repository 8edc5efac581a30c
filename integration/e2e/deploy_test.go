//go:build pool

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

// site renders a kustomization of a site.
func site(t *testing.T, kustomization string) []map[string]any {
	t.Helper()
	return render(t, siteDir(t, kustomization))
}

// siteDir is a folder with a kustomization, beside those of deploy.
func siteDir(t *testing.T, kustomization string) string {
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
	return own
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

// template is the pod that a Job or a Deployment makes.
func template(owner map[string]any) map[string]any {
	pod := spec(owner)["template"].(map[string]any)
	metadata(pod)["name"] = metadata(owner)["name"]
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

// TestResizeRole: the component for limits adds one right, on the same pods.
func TestResizeRole(t *testing.T) {
	oursOnly(t)
	pods := map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get", "watch", "patch"}}
	resize := map[string]any{"apiGroups": []any{""}, "resources": []any{"pods/resize"}, "verbs": []any{"patch"}}
	got := theOne(t, site(t, "resources: [../glidein]\ncomponents: [../components/one-role, ../components/resize, ../components/resize/one-role]\n"), "Role")["rules"]
	if diff := cmp.Diff([]any{pods, resize}, got); diff != "" {
		t.Errorf("one Role for all (-want +got):\n%s", diff)
	}
	pods["resourceNames"], resize["resourceNames"] = []any{"glidein"}, []any{"glidein"}
	got = theOne(t, site(t, "resources: [../glidein]\ncomponents: [../components/resize]\n"), "Role")["rules"]
	if diff := cmp.Diff([]any{pods, resize}, got); diff != "" {
		t.Errorf("one for each (-want +got):\n%s", diff)
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
// that gives them the wrapper, and the pilot tells them when it stops. Nothing else changes.
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
				one.(map[string]any)["lifecycle"] = map[string]any{"preStop": map[string]any{"exec": map[string]any{
					"command": []any{"/opt/podstarter/bin/condor_pod_starter", "-pilot-stops"}}}}
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

// ownedManifest checks an object of a folder of deploy that makes pods: the pod is that of the other kustomization, none is left
// beside it, and the Role serves pods of all names.
func ownedManifest(t *testing.T, dir, kind, like string) map[string]any {
	t.Helper()
	objects := rendered(t, dir)
	owner := theOne(t, objects, kind)
	want := theOne(t, site(t, like), "Pod")
	got := template(owner)
	for _, pod := range []map[string]any{want, got} {
		for _, v := range spec(pod)["volumes"].([]any) {
			if v := v.(map[string]any); v["name"] == "config" {
				delete(v, "configMap") // its name is that of the contents
			}
		}
	}
	if diff := cmp.Diff(want["spec"], got["spec"]); diff != "" {
		t.Errorf("the pod of the %s (-want +got):\n%s", kind, diff)
	}
	for name, value := range labels(want) {
		if labels(got)[name] != value {
			t.Errorf("the pod of the %s has the label %s: %v, want %v", kind, name, labels(got)[name], value)
		}
	}
	if slices.ContainsFunc(objects, func(o map[string]any) bool { return o["kind"] == "Pod" }) {
		t.Errorf("there is a pod beside the %s", kind)
	}
	if names := theOne(t, objects, "Role")["rules"].([]any)[0].(map[string]any)["resourceNames"]; names != nil {
		t.Errorf("the Role names pods: %v", names)
	}
	return owner
}

func metadata(o map[string]any) map[string]any { return o["metadata"].(map[string]any) }

func labels(o map[string]any) map[string]any { return metadata(o)["labels"].(map[string]any) }

// TestJobManifest: the Job's pod is the glidein with a sidecar, and its pilot ends by itself.
func TestJobManifest(t *testing.T) {
	oursOnly(t)
	text := theOne(t, rendered(t, "glidein-job"), "ConfigMap")["data"].(map[string]any)["70-lifetime.conf"]
	if !strings.Contains(fmt.Sprint(text), "\nPOD_STARTER_IDLE_TIME =") {
		t.Errorf("no end of the pilot is configured: %v", text)
	}
	ownedManifest(t, "glidein-job", "Job", "resources: [../glidein]\ncomponents: [../components/sidecars]\n")
}

// TestDeploymentManifest: the Deployment's pod is the glidein. Its selector picks its pods, and no others of deploy.
func TestDeploymentManifest(t *testing.T) {
	oursOnly(t)
	owner := ownedManifest(t, "glidein-deployment", "Deployment", "resources: [../glidein]\n")
	if diff := cmp.Diff(selected(owner), labels(template(owner))); diff != "" {
		t.Errorf("(-selected +labels of the pod):\n%s", diff)
	}
	for _, other := range []map[string]any{theOne(t, rendered(t, "glidein"), "Pod"), template(theOne(t, rendered(t, "glidein-job"), "Job"))} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(selected(owner))), func(name string) bool { return labels(other)[name] != selected(owner)[name] }) {
			t.Errorf("the Deployment would take pods with the labels %v for its own", labels(other))
		}
	}
}

// TestDisruptionBudget: the budget is for the Deployment's pods, also where a site gives those labels and names of its own.
func TestDisruptionBudget(t *testing.T) {
	oursOnly(t)
	const budget = "resources: [../glidein-deployment]\ncomponents: [../components/disruption-budget]\n"
	for _, own := range []string{"", "namePrefix: a-\nlabels: [{pairs: {app.kubernetes.io/instance: a}, includeSelectors: true}]\n"} {
		objects := site(t, budget+own)
		want := theOne(t, objects, "Deployment")
		got := theOne(t, objects, "PodDisruptionBudget")
		if diff := cmp.Diff(selected(want), selected(got)); diff != "" {
			t.Errorf("%sselectors (-Deployment +budget):\n%s", own, diff)
		}
		if diff := cmp.Diff(metadata(want)["name"], metadata(got)["name"]); diff != "" {
			t.Errorf("%snames (-Deployment +budget):\n%s", own, diff)
		}
	}
}

// selected are the labels that an object's selector asks for.
func selected(o map[string]any) map[string]any {
	return spec(o)["selector"].(map[string]any)["matchLabels"].(map[string]any)
}

// TestGPUComponents: the payload container asks for a GPU, its variable does not replace the device plugin's, and the
// API server accepts the pod and all that belongs to it.
func TestGPUComponents(t *testing.T) {
	oursOnly(t)
	for component, ask := range map[string]func(resources map[string]any){
		"gpu":       func(r map[string]any) { r["limits"].(map[string]any)["nvidia.com/gpu"] = 1 },
		"gpu-claim": func(r map[string]any) { r["claims"] = []any{map[string]any{"name": "gpu"}} },
	} {
		for _, base := range []string{"glidein", "glidein-unshared", "glidein-rootless"} {
			want := theOne(t, site(t, "resources: [../"+base+"]\n"), "Pod")
			objects := site(t, "resources: [../"+base+"]\ncomponents: [../components/"+component+"]\n")
			got := theOne(t, objects, "Pod")
			for _, one := range spec(want)["containers"].([]any) {
				if c := one.(map[string]any); isPayload(one) {
					c["env"] = slices.DeleteFunc(c["env"].([]any), func(v any) bool { return v.(map[string]any)["name"] == "NVIDIA_VISIBLE_DEVICES" })
					ask(c["resources"].(map[string]any))
				}
			}
			if component == "gpu-claim" {
				spec(want)["resourceClaims"] = []any{map[string]any{"name": "gpu", "resourceClaimTemplateName": "glidein-gpu"}}
			}
			// The configuration's name changes with its contents.
			for _, pod := range []map[string]any{want, got} {
				for _, v := range spec(pod)["volumes"].([]any) {
					if c, ok := v.(map[string]any)["configMap"].(map[string]any); ok {
						c["name"] = "glidein-config"
					}
				}
			}
			if diff := cmp.Diff(inJSON(t, want), inJSON(t, got)); diff != "" {
				t.Errorf("%s with %s (-want +got):\n%s", base, component, diff)
			}
			if config := theOne(t, objects, "ConfigMap")["data"].(map[string]any)["72-gpus.conf"]; config == nil {
				t.Errorf("%s with %s has no configuration of GPUs", base, component)
			}
			for _, o := range objects {
				metadata := o["metadata"].(map[string]any)
				if metadata["namespace"] != nil {
					metadata["namespace"] = harness.Namespace
				}
				if o["kind"] == "Pod" {
					metadata["name"] = "gpu-dry-run"
				}
				if kind := o["kind"]; kind != "Pod" && kind != "ResourceClaimTemplate" {
					continue
				}
				if out, err := pool.Kubectl(t.Context(), strings.NewReader(inJSON(t, o)), "create", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil {
					t.Errorf("%s with %s: the API server does not accept the %v: %v\n%s", base, component, o["kind"], err, out)
				}
			}
		}
	}
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
