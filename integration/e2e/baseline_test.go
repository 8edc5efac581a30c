//go:build pool

package e2e

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// guarded is a namespace in which only pods of the level baseline may run. It
// stays: without a controller manager nobody could delete it.
const guarded = `
apiVersion: v1
kind: Namespace
metadata:
  name: e2e-baseline
  labels:
    pod-security.kubernetes.io/enforce: baseline
    pod-security.kubernetes.io/enforce-version: latest
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: e2e-baseline}
`

// TestPodSecurityBaseline: every pod of deploy/ is admitted unchanged where
// baseline is enforced, and pods that break its rules are not.
func TestPodSecurityBaseline(t *testing.T) {
	oursOnly(t)
	if _, err := pool.Kubectl(t.Context(), strings.NewReader(guarded), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	create := func(t *testing.T, pod map[string]any) error {
		t.Helper()
		pod["metadata"].(map[string]any)["namespace"] = "e2e-baseline"
		text, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		_, err = pool.Kubectl(t.Context(), bytes.NewReader(text), "create", "--dry-run=server", "-f", "-")
		return err
	}
	pods := 0
	for _, dir := range kustomizations(t) {
		t.Run(dir, func(t *testing.T) {
			for _, o := range rendered(t, dir) {
				if o["kind"] == "Job" || o["kind"] == "Deployment" {
					o = template(o)
				}
				if o["kind"] != "Pod" {
					continue
				}
				pods++
				// Only the service account is changed, to one that the namespace
				// has.
				delete(o["spec"].(map[string]any), "serviceAccountName")
				if err := create(t, o); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if pods < 2 {
		t.Errorf("deploy/ has %d pods; are they looked for in the right place?", pods)
	}
	for name, breach := range map[string]func(pod map[string]any){
		"host network": func(pod map[string]any) { pod["spec"].(map[string]any)["hostNetwork"] = true },
		"capability": func(pod map[string]any) {
			container(pod, "payload")["securityContext"].(map[string]any)["capabilities"] = map[string]any{"add": []string{"SYS_PTRACE"}}
		},
		"node's files": func(pod map[string]any) {
			spec := pod["spec"].(map[string]any)
			spec["volumes"] = append(spec["volumes"].([]any), map[string]any{"name": "node", "hostPath": map[string]any{"path": "/"}})
		},
	} {
		t.Run("not "+name, func(t *testing.T) {
			for _, o := range rendered(t, "glidein") {
				if o["kind"] != "Pod" {
					continue
				}
				delete(o["spec"].(map[string]any), "serviceAccountName")
				breach(o)
				if err := create(t, o); err == nil || !strings.Contains(err.Error(), `violates PodSecurity "baseline:latest"`) {
					t.Errorf("got %v, want a refusal by the level baseline", err)
				}
			}
		})
	}
}

// kustomizations are the folders of deploy/ that can be applied.
func kustomizations(t *testing.T) []string {
	t.Helper()
	var found []string
	root := filepath.Join(pool.Root, "deploy")
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "kustomization.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || strings.Contains(string(text), "\nkind: Component\n") {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		found = append(found, dir)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// rendered are the objects of a folder of deploy/.
func rendered(t *testing.T, dir string) []map[string]any {
	t.Helper()
	return render(t, filepath.Join(pool.Root, "deploy", dir))
}

func render(t *testing.T, dir string) []map[string]any {
	t.Helper()
	text, err := pool.Kubectl(t.Context(), nil, "kustomize", dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err = pool.Kubectl(t.Context(), strings.NewReader(text), "create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for dec := json.NewDecoder(strings.NewReader(text)); dec.More(); {
		var o struct {
			Kind  string
			Items []map[string]any
		}
		var raw json.RawMessage
		var single map[string]any
		if err := dec.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatal(err)
		}
		if o.Kind == "List" {
			all = append(all, o.Items...)
			continue
		}
		if err := json.Unmarshal(raw, &single); err != nil {
			t.Fatal(err)
		}
		all = append(all, single)
	}
	return all
}

// container finds one in a pod's manifest.
func container(pod map[string]any, name string) map[string]any {
	for _, list := range []string{"containers", "initContainers"} {
		all, _ := pod["spec"].(map[string]any)[list].([]any)
		for _, c := range all {
			if c := c.(map[string]any); c["name"] == name {
				return c
			}
		}
	}
	return nil
}

// TestNoTokenInPayload: a job finds no token of the cluster, and no address of its
// API server, in its container.
func TestNoTokenInPayload(t *testing.T) {
	oursOnly(t)
	const dir = "/var/run/secrets/kubernetes.io"
	s := job("peek="+dir+" peek="+dir+"/serviceaccount/token peek=/run/secrets/kubernetes.io peek=/run/podstarter/private peek=/etc/podstarter/credentials facts",
		"universe = docker", "docker_image = "+pool.Image("debian"))
	job := submit(t, s)[0]
	mustExit(t, job, 0)
	seen, err := job.Facts("out")
	if err != nil {
		t.Fatal(err)
	}
	if len(seen.Peeks) != 5 {
		t.Errorf("the job looked at %v", seen.Peeks)
	}
	for path, got := range seen.Peeks {
		if got != "no such file or directory" {
			t.Errorf("%s: %s, want no such file or directory", path, got)
		}
	}
	for _, v := range seen.Env {
		if strings.HasPrefix(v, "KUBERNETES_") {
			t.Errorf("the job's environment has %s", v)
		}
	}
	// The manifest agrees: no payload container mounts a token, and only the pilot
	// does.
	text, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", "pod", side.PodName(),
		"-o", `jsonpath={range .spec['initContainers','containers'][*]}{.name}: {.volumeMounts[*].mountPath}{"\n"}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if name, _, _ := strings.Cut(line, ":"); strings.Contains(line, "/var/run/secrets") != (name == "pilot") {
			t.Errorf("who mounts a token: %s", line)
		}
	}
	// And a job that asks without one has no rights.
	nobody, err := pool.WithToken(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	code, message, err := nobody.Ask(t.Context(), http.MethodGet, "/api/v1/namespaces/"+harness.Namespace+"/pods/"+side.PodName(), "", "")
	if err != nil || code != http.StatusForbidden && code != http.StatusUnauthorized {
		t.Errorf("without a token the API server answers %d %.200s (%v)", code, message, err)
	}
}
