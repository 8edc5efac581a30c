//go:build pool

package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// A site is what an administrator makes of a folder of deploy/: a kustomization of images, configuration and patches.
type site struct {
	// source is the folder, and components are more of deploy/components.
	source     string
	components []string
	// kind is that of the object which makes the pods.
	kind string
	// spec is a patch of that object's specification.
	spec object
	// config is more configuration of its pilots.
	config []string
	// env, mounts and volumes are more of its pilots, payloadMounts of its payload containers.
	env, mounts, volumes, payloadMounts []object
}

// attribute is that of the execution points in such pods, and of the jobs for them. Others do not meet.
const attribute = "ControllersTest"

// ours is the label of all objects that a site makes itself.
const ours = "podstarter-controllers-test"

// owner is the object that makes the pods, for kubectl.
func (s site) owner() string { return strings.ToLower(s.kind) + "/glidein" }

// mark is the value of the attribute. Jobs that a run left which was killed have another one.
func (s site) mark(t *testing.T) string { return fmt.Sprintf("%s-%d", t.Name(), os.Getpid()) }

// apply applies the site with kubectl, and removes it when the test ends.
func (s site) apply(ctx context.Context, t *testing.T) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "deploy")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(pool.Root, "deploy"))); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "site")
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s.kustomization(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"kustomization.yaml": string(text), "90-test.conf": s.configuration(ctx, t)} {
		if err := os.WriteFile(filepath.Join(own, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	role := roleOf(ctx, t)
	t.Cleanup(func() { s.remove(t, role) })
	kubectl(ctx, t, "apply", "--server-side", "--force-conflicts", "-k", own)
}

// roleOf is the Role of the pool's own pod, which the sites share with it, and change.
func roleOf(ctx context.Context, t *testing.T) object {
	t.Helper()
	var role object
	if err := json.Unmarshal([]byte(kubectl(ctx, t, "get", "role", "glidein", "-o", "json")), &role); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"resourceVersion", "managedFields", "uid"} {
		delete(role["metadata"].(object), name)
	}
	return role
}

// remove removes what makes pods, and the pods. The Role becomes what it was.
func (s site) remove(t *testing.T, role object) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if t.Failed() {
		s.describe(ctx, t)
	}
	if err := removeOwners(ctx); err != nil {
		t.Error(err)
	}
	text, err := json.Marshal(role)
	if err == nil {
		_, err = pool.Kubectl(ctx, bytes.NewReader(text), "replace", "-f", "-")
	}
	if err != nil {
		t.Error(err)
	}
}

// removeOwners removes the objects of all sites except the pilots' account and its rights, and waits for the end of their pods.
func removeOwners(ctx context.Context) error {
	_, err := pool.Kubectl(ctx, nil, "-n", harness.Namespace, "delete", "--cascade=foreground", "--selector="+ours,
		"jobs,deployments,poddisruptionbudgets,configmaps")
	return err
}

// describe logs what is known of the objects and of the pilots.
func (s site) describe(ctx context.Context, t *testing.T) {
	for _, argv := range [][]string{
		{"get", "events", "--sort-by=.lastTimestamp", "--field-selector=involvedObject.name!=" + harness.Ours.PodName()}, {"describe", s.owner()}, {"get", "pods", "-o", "wide"},
	} {
		out, err := pool.Kubectl(ctx, nil, append([]string{"-n", harness.Namespace}, argv...)...)
		t.Logf("kubectl %s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	t.Logf("the daemons' logs are in %s/log/glidein-*", pool.State)
}

// versions are those of the API that has objects of the kinds.
var versions = map[string]string{"Job": "batch/v1", "Deployment": "apps/v1"}

// podLabels select the pods of the sites, and the pool's own.
const podLabels = "app.kubernetes.io/name=podstarter,app.kubernetes.io/component=glidein"

type object = map[string]any

// kustomization has images and network of the pool, and logs where the pool has them.
func (s site) kustomization(t *testing.T) object {
	port, err := pool.EP(t.Context(), harness.Ours, "printenv", "KUBERNETES_SERVICE_PORT")
	if err != nil {
		t.Fatal(err)
	}
	spec := object{}
	maps.Copy(spec, s.spec)
	// The machine has room for two pods, and not for what they request as deployed.
	small := object{"name": "payload", "resources": object{"requests": object{"cpu": "10m"}}}
	if s.payloadMounts != nil { // null would take away those that it has
		small["volumeMounts"] = s.payloadMounts
	}
	payloads, first := "containers", []object(nil)
	if s.kind == "Job" {
		payloads, first = "initContainers", []object{{"name": "prepare"}} // only so that the order stays
	}
	template := object{
		"hostNetwork": true, "dnsPolicy": "Default",
		"volumes": append([]object{{"name": "log", "emptyDir": nil, "hostPath": object{"path": filepath.Join(pool.State, "log"), "type": "Directory"}}}, s.volumes...),
		"containers": []object{{
			"name": "pilot",
			"env": append([]object{
				{"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"}, {"name": "KUBERNETES_SERVICE_PORT", "value": strings.TrimSpace(port)},
			}, s.env...),
			"volumeMounts": append([]object{{"name": "log", "mountPath": "/var/log/condor", "subPathExpr": "$(POD_NAME)"}}, s.mounts...),
		}},
	}
	if own, ok := template[payloads].([]object); ok {
		first = own
	}
	template[payloads] = append(first, small)
	spec["template"] = object{"spec": template}
	patch, err := json.Marshal(object{"apiVersion": versions[s.kind], "kind": s.kind, "metadata": object{"name": "glidein"}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	components := []string{}
	for _, c := range s.components {
		components = append(components, "../components/"+c)
	}
	return object{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
		"labels":    []object{{"pairs": object{ours: ""}}},
		"resources": []string{"../" + s.source}, "components": components,
		"images":             []object{image("registry.example.org/podstarter/pilot", pool.Image("pilot")), image("docker.io/library/debian", pool.Image("debian"))},
		"patches":            []object{{"target": object{"kind": s.kind}, "patch": string(patch)}},
		"configMapGenerator": []object{{"name": "glidein-config", "namespace": harness.Namespace, "behavior": "merge", "files": []string{"90-test.conf"}}},
	}
}

// image puts a reference of the pool in the place of another.
func image(name, reference string) object {
	at := strings.LastIndex(reference, ":")
	return object{"name": name, "newName": reference[:at], "newTag": reference[at+1:]}
}

// configuration is that of the pool's own execution point, with what is different here.
func (s site) configuration(ctx context.Context, t *testing.T) string {
	t.Helper()
	name := kubectl(ctx, t, "get", "pod", harness.Ours.PodName(), "-o", `jsonpath={.spec.volumes[?(@.name=="config")].configMap.name}`)
	base := kubectl(ctx, t, "get", "configmap", name, "-o", `jsonpath={.data['90-test\.conf']}`)
	return strings.Join(append([]string{
		base,
		"# Pods that follow each other have the node's network together.",
		"SHARED_PORT_PORT = 0",
		attribute + " = " + strconv.Quote(s.mark(t)),
		"STARTD_ATTRS = $(STARTD_ATTRS) " + attribute,
		"START = ($(START)) && TARGET." + attribute + " =?= " + strconv.Quote(s.mark(t)),
	}, append(s.config, "")...), "\n")
}

// A pod is one that a site's owner has made.
type pod struct {
	Metadata struct {
		Name, UID         string
		DeletionTimestamp string
		OwnerReferences   []struct{ Kind string }
	}
	Spec   struct{ NodeName string }
	Status struct {
		Phase                                    string
		Conditions                               []struct{ Type, Status, Reason string }
		ContainerStatuses, InitContainerStatuses []struct {
			Name         string
			RestartCount int
			State        struct {
				Terminated struct {
					ExitCode int
					Message  string
				}
			}
		}
	}
}

func (p pod) is(condition, status string) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == condition {
			return c.Status == status
		}
	}
	return false
}

// pods are those that controllers have made, also those that are on their way out.
func pods(ctx context.Context) ([]pod, error) {
	out, err := pool.Kubectl(ctx, nil, "-n", harness.Namespace, "get", "pods", "-l", podLabels, "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct{ Items []pod }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("reading the pods: %w", err)
	}
	var owned []pod
	for _, p := range list.Items {
		if len(p.Metadata.OwnerReferences) > 0 {
			owned = append(owned, p)
		}
	}
	return owned, nil
}

// await waits until the pods are as they should be, and returns them.
func await(ctx context.Context, t *testing.T, what string, enough func([]pod) bool) []pod {
	t.Helper()
	var last []pod
	err := harness.Poll(ctx, what, func() (bool, error) {
		var err error
		last, err = pods(ctx)
		return err == nil && enough(last), err
	})
	if err != nil {
		t.Fatalf("%v; the pods are %+v", err, last)
	}
	return last
}

// slots waits until the collector knows so many slots of the site.
func (s site) slots(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	began := time.Now()
	err := harness.Poll(ctx, fmt.Sprintf("%d slots", n), func() (bool, error) {
		out, err := pool.AP(ctx, "condor_status", "-af", "Name", "-constraint", attribute+" =?= "+strconv.Quote(s.mark(t)))
		return strings.Count(out, "\n") == n, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d slots after %v", n, time.Since(began).Round(100*time.Millisecond))
}
