package provision

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"podstarter/integration/harness"
)

// A Site is what an administrator makes of deploy/provisioner: the provisioner's configuration and its templates.
type Site struct {
	Pool *harness.Pool
	// Mark is the value of [Attribute] that the site's slots and jobs have. Others do not meet them.
	Mark string
	// Config is provisioner.yaml without the name, which is [Name].
	Config    string
	Templates []Template

	role object // that of the pilots before this site
	port int    // at which the provisioner tells of itself
}

// A Template is one of the provisioner's.
type Template struct {
	Name string
	// Text is the rest of NAME.template.yaml; lines of the slot are added to it.
	Text string
	// Pilot is the image of its pilots; empty is the pool's.
	Pilot string
	// Containers is how many payload containers its pods have; 0 is one. Each is a slot, or one slot is cut for the jobs.
	Containers    int
	Partitionable bool
	// GPUs: each payload container has a GPU.
	GPUs bool
}

// Name begins the names of the site's pods.
const Name = "auto"

// namespace is that of deploy/provisioner. The site has it in that of the pool, where images, secrets and the pilots' account are.
const namespace = "podstarter-glideins"

// Attribute is that of the slots and jobs of a site.
const Attribute = "ProvisionTest"

// ours is the label of all objects that a site makes itself.
const ours = "podstarter-provision-test"

// made selects what the provisioner makes.
const made = "provisioner.podstarter/name=" + Name

type object = map[string]any

// Check returns an error if the pool cannot have a provisioner.
func Check(pool *harness.Pool) error {
	if !pool.Controllers || pool.Slots != 1 || pool.Spares > 0 || pool.Pullers > 0 || pool.Partitionable || pool.Sidecars || pool.Network != harness.HostNetwork || pool.Mode != harness.Shared {
		return errors.New("the pool cannot have a provisioner; start it with: pool up --controllers --slots 1 " +
			"--spares 0 --pullers 0 --sidecars=false --partitionable=false --mode shared --network host")
	}
	return nil
}

// Requirements are those of the site's jobs, in addition to what they need.
func (s *Site) Requirements() string { return "TARGET." + Attribute + " =?= " + strconv.Quote(s.Mark) }

// Commands are those of each job of the site.
func (s *Site) Commands() string { return "+" + Attribute + " = " + strconv.Quote(s.Mark) + "\n" }

// Apply applies the site with kubectl: what it makes of deploy/ is in a directory, which need not be there. Remove takes it away.
func (s *Site) Apply(ctx context.Context, dir string) error {
	if err := Check(s.Pool); err != nil {
		return err
	}
	if err := s.Pool.GiveDisk(ctx); err != nil {
		return err
	}
	dir = filepath.Join(dir, "deploy")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(s.Pool.Root, "deploy"))); err != nil {
		return err
	}
	if err := s.write(ctx, dir); err != nil {
		return fmt.Errorf("making a site of deploy/provisioner: %w", err)
	}
	if err := s.noteRole(ctx); err != nil {
		return err
	}
	if err := s.secret(ctx); err != nil {
		return fmt.Errorf("giving the provisioner a token of the pool: %w", err)
	}
	if _, err := s.kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(dir, "site")); err != nil {
		return err
	}
	_, err := s.kubectl(ctx, "rollout", "status", "deployment/provisioner", "--timeout=2m")
	return err
}

// Remove removes the provisioner, what it has made, and what the site has made. The pilots' Role becomes what it was.
func (s *Site) Remove(ctx context.Context) error {
	// First nobody makes any more.
	err := remove(ctx, s.Pool)
	if s.role == nil {
		return err
	}
	text, werr := json.Marshal(s.role)
	if werr == nil {
		_, werr = s.Pool.Kubectl(ctx, bytes.NewReader(text), "replace", "-f", "-")
	}
	return errors.Join(err, werr)
}

// remove removes what any site has left.
func remove(ctx context.Context, pool *harness.Pool) error {
	for _, argv := range [][]string{
		{"--cascade=foreground", "--selector=" + ours, "deployments"},
		{"--cascade=foreground", "--selector=" + made, "jobs,pods"},
		{"--selector=" + ours, "configmaps,secrets"},
	} {
		if _, err := pool.Kubectl(ctx, nil, append([]string{"-n", harness.Namespace, "delete"}, argv...)...); err != nil {
			return err
		}
	}
	return nil
}

// Clean removes what a run has left that was killed.
func Clean(ctx context.Context, pool *harness.Pool) error { return remove(ctx, pool) }

// kubectl runs kubectl in the namespace of the pool.
func (s *Site) kubectl(ctx context.Context, argv ...string) (string, error) {
	out, err := s.Pool.Kubectl(ctx, nil, append([]string{"-n", harness.Namespace}, argv...)...)
	return strings.TrimSpace(out), err
}

// Ask runs the provisioner's program once more, beside the one that runs, as an administrator does who wants to know.
func (s *Site) Ask(ctx context.Context, argv ...string) (string, error) {
	return s.kubectl(ctx, append([]string{"exec", "deployment/provisioner", "--", "/opt/podstarter/bin/condor_pod_provisioner"}, argv...)...)
}

// noteRole notes the Role of the pool's own pilot, which the site's pilots share, and widen.
func (s *Site) noteRole(ctx context.Context) error {
	text, err := s.kubectl(ctx, "get", "role", "glidein", "-o", "json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), &s.role); err != nil {
		return fmt.Errorf("reading the pilots' Role: %w", err)
	}
	for _, name := range []string{"resourceVersion", "managedFields", "uid"} {
		delete(s.role["metadata"].(object), name)
	}
	return nil
}

// secret makes the provisioner's secret: a token with which it may read, as the kustomization says.
func (s *Site) secret(ctx context.Context) error {
	token, err := s.kubectl(ctx, "exec", "pool", "--", "condor_token_create", "-identity", "provisioner@pool.invalid", "-authz", "READ")
	if err != nil {
		return err
	}
	text, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "provisioner-credentials", "namespace": harness.Namespace, "labels": object{ours: ""}},
		"stringData": object{"pool.token": token + "\n"},
	})
	if err != nil {
		return err
	}
	_, err = s.Pool.Kubectl(ctx, bytes.NewReader(text), "apply", "-f", "-")
	return err
}

// write writes the site's kustomizations: one for the pods of each template, whose output is the template's manifest, and one of
// the whole.
func (s *Site) write(ctx context.Context, dir string) error {
	base, err := s.poolConfiguration(ctx)
	if err != nil {
		return err
	}
	config := s.configuration(base)
	own := filepath.Join(dir, "site")
	files := map[string]string{
		"90-test.conf":     config,
		"90-pool.conf":     base,
		"provisioner.yaml": "name: " + Name + "\n" + s.Config,
	}
	generated, resources := []string{}, []string{"../provisioner"}
	for _, t := range s.Templates {
		text, err := s.manifest(ctx, dir, config+t.configuration(), t)
		if err != nil {
			return err
		}
		text, configs, err := several(text, t.payloads())
		if err != nil {
			return fmt.Errorf("copying the payload container of %s: %w", t.Name, err)
		}
		files[t.Name+".yaml"], files[t.Name+".template.yaml"] = text, t.text(s.Mark)
		generated = append(generated, t.Name+".yaml", t.Name+".template.yaml")
		if t.configuration() == "" && !t.GPUs {
			continue // its ConfigMap is the site's
		}
		for name, text := range configs {
			files[name+".yaml"] = text
			resources = append(resources, name+".yaml")
		}
	}
	port, err := s.apiPort(ctx)
	if err != nil {
		return err
	}
	if s.port, err = harness.FreePort(); err != nil {
		return err
	}
	patch, err := json.Marshal(object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "provisioner"}, "spec": object{"template": object{"spec": object{
		"hostNetwork": true, "dnsPolicy": "Default",
		"containers": []object{{
			"name": "provisioner", "env": apiServer(port), "args": []string{"-listen", fmt.Sprintf(":%d", s.port)},
			"ports": []object{{"$patch": "replace"}, {"name": "http", "containerPort": s.port}},
		}},
	}}}})
	if err != nil {
		return err
	}
	generator := func(name, behavior string, files ...string) object {
		return object{"name": name, "namespace": namespace, "behavior": behavior, "files": files}
	}
	return writeKustomization(own, files, object{
		"namespace": harness.Namespace,
		"resources": resources,
		"labels":    []object{{"pairs": object{ours: ""}}},
		"images":    []object{image("registry.example.org/podstarter/pilot", s.Pool.Image("pilot"))},
		"patches":   []object{{"target": object{"kind": "Deployment"}, "patch": string(patch)}},
		"configMapGenerator": []object{
			generator("glidein-config", "merge", "90-test.conf"), generator("provisioner-pool", "merge", "90-pool.conf"),
			generator("provisioner-config", "replace", "provisioner.yaml"), generator("provisioner-templates", "replace", generated...),
		},
	})
}

// manifest is what kustomize makes of the pods of a template. They have images and network of the pool, and logs where the pool has them.
func (s *Site) manifest(ctx context.Context, deploy, config string, t Template) (string, error) {
	dir := filepath.Join(deploy, "pods-"+t.Name)
	folder, err := t.folder(deploy)
	if err != nil {
		return "", err
	}
	port, err := s.apiPort(ctx)
	if err != nil {
		return "", err
	}
	pilot := t.Pilot
	if pilot == "" {
		pilot = s.Pool.Image("pilot")
	}
	patch, err := json.Marshal(object{"apiVersion": "batch/v1", "kind": "Job", "metadata": object{"name": "glidein"}, "spec": object{
		"ttlSecondsAfterFinished": int(keep.Seconds()),
		"template": object{"spec": object{
			"hostNetwork": true, "dnsPolicy": "Default",
			"volumes": []object{{"name": "log", "emptyDir": nil, "hostPath": object{"path": filepath.Join(s.Pool.State, "log"), "type": "Directory"}}},
			"initContainers": []object{
				{"name": "prepare"}, // only so that the order stays
				// The machine has two processors for all pods, which use little.
				{"name": "payload", "resources": object{"requests": object{"cpu": "10m"}}},
			},
			"containers": []object{{
				"name": "pilot", "env": apiServer(port), "resources": object{"requests": object{"cpu": "10m"}},
				"volumeMounts": []object{{"name": "log", "mountPath": "/var/log/condor", "subPathExpr": "$(POD_NAME)"}},
			}},
		}},
	}})
	if err != nil {
		return "", err
	}
	err = writeKustomization(dir, map[string]string{"90-test.conf": config}, object{
		"namespace":          harness.Namespace,
		"resources":          []string{folder},
		"images":             []object{image("registry.example.org/podstarter/pilot", pilot), image("docker.io/library/debian", s.Pool.Image("debian"))},
		"patches":            []object{{"target": object{"kind": "Job"}, "patch": string(patch)}},
		"configMapGenerator": []object{{"name": "glidein-config", "namespace": namespace, "behavior": "merge", "files": []string{"90-test.conf"}}},
	})
	if err != nil {
		return "", err
	}
	return s.Pool.Kubectl(ctx, nil, "kustomize", dir)
}

// poolConfiguration is how the pool's own execution point finds the pool.
func (s *Site) poolConfiguration(ctx context.Context) (string, error) {
	name, err := s.kubectl(ctx, "get", "pod", harness.Ours.PodName(), "-o", `jsonpath={.spec.volumes[?(@.name=="config")].configMap.name}`)
	if err != nil {
		return "", err
	}
	text, err := s.kubectl(ctx, "get", "configmap", name, "-o", `jsonpath={.data['90-test\.conf']}`)
	if err != nil {
		return "", err
	}
	var kept []string
	for line := range strings.Lines(text) {
		// A device of the pool's own execution point is not the site's.
		if name, _, _ := strings.Cut(line, " "); !slices.Contains([]string{"POD_STARTER_GPU_CONTAINERS", "NUM_SLOTS_TYPE_1", "SLOT_TYPE_1"}, name) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, ""), nil
}

// configuration is that of the site's pods: the pool's own execution point's, with what is different.
func (s *Site) configuration(base string) string {
	return strings.Join([]string{
		base,
		"# Pods that follow each other have the node's network together.",
		"SHARED_PORT_PORT = 0",
		"# The pool's own has the node's size.",
		"NUM_CPUS = $INT(PODSTARTER_CPUS)",
		Attribute + " = " + strconv.Quote(s.Mark),
		"STARTD_ATTRS = $(STARTD_ATTRS) " + Attribute,
		"START = ($(START)) && TARGET." + Attribute + " =?= " + strconv.Quote(s.Mark),
		"# The negotiator of this pool looks every other second.",
		fmt.Sprintf("POD_STARTER_IDLE_TIME = %d", int(idle.Seconds())),
		"UPDATE_INTERVAL = 5",
		"",
	}, "\n")
}

func (s *Site) apiPort(ctx context.Context) (string, error) {
	port, err := s.Pool.EP(ctx, harness.Ours, "printenv", "KUBERNETES_SERVICE_PORT")
	return strings.TrimSpace(port), err
}

// apiServer is the environment by which a container finds the API server.
func apiServer(port string) []object {
	return []object{{"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"}, {"name": "KUBERNETES_SERVICE_PORT", "value": port}}
}

// image puts a reference of the pool in the place of another.
func image(name, reference string) object {
	at := strings.LastIndex(reference, ":")
	return object{"name": name, "newName": reference[:at], "newTag": reference[at+1:]}
}

// writeKustomization writes one with its files.
func writeKustomization(dir string, files map[string]string, kustomization object) error {
	kustomization["apiVersion"], kustomization["kind"] = "kustomize.config.k8s.io/v1beta1", "Kustomization"
	text, err := json.Marshal(kustomization)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	err = os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o644)
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	return err
}
