//go:build pool

package attacks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// rights let the glideins of the tests do what the role of deploy/glidein lets
// its own pod do.
const rights = `{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "attacks", "namespace": "podstarter"},
 "rules": [{"apiGroups": [""], "resources": ["pods"], "resourceNames": ["attacked", "attacked-open", "attacked-together", "attacked-spares"], "verbs": ["get", "watch", "patch"]}]},
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "attacks", "namespace": "podstarter"},
 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "attacks"},
 "subjects": [{"kind": "ServiceAccount", "name": "glidein", "namespace": "podstarter"}]}]}`

// A target is an execution point that is attacked: a pod like that of deploy/glidein,
// as the pool runs it.
type target struct {
	side          harness.Side
	pod           Pod
	port          int    // of its daemons
	wrapperVolume string // the volume that the payload containers take the wrapper from
}

// programsDirectory is where the pilot has our programs.
const programsDirectory = "/opt/podstarter/bin"

// slots are the payload containers of the pod that are no spares.
func (w *target) slots() []string { return w.pod.slots(pool.Mode) }

// containers are all payload containers of the pod.
func (w *target) containers() []string { return w.pod.containers(pool.Mode) }

// off are the defences that are off in the pod in all settings.
func (w *target) off() []string { return Setting{Pod: w.pod.Name}.off(pool.Mode) }

// makeTarget makes a pod like the glidein that runs, without some defences, and waits
// until its startd has reported to the collector.
func makeTarget(ctx context.Context, p Pod) (*target, error) {
	name := p.Name
	w := &target{side: harness.Side(name), pod: p}
	pod, config, err := w.manifest(ctx)
	if err != nil {
		return nil, err
	}
	if len(w.off()) > 0 {
		// Before the startd first asks its starter what it can do.
		if err := w.program(starterProgram, w.off(), filepath.Join(w.programs(), starterProgram)); err != nil {
			return nil, err
		}
	}
	if err := ownLogs(name); err != nil {
		return nil, err
	}
	for _, o := range []any{config, pod} {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		if _, err := pool.Kubectl(ctx, strings.NewReader(string(text)), "apply", "-f", "-"); err != nil {
			return nil, err
		}
	}
	if _, err := pool.Kubectl(ctx, nil, "-n", harness.Namespace, "wait", "--for=condition=Ready", "--timeout=180s", "pod/"+name); err != nil {
		return nil, err
	}
	if err := pool.AddSide(ctx, w.side); err != nil {
		return nil, err
	}
	volumes, err := filepath.Glob(filepath.Join(pool.State, "kubelet", "pods", "*", "volumes", "kubernetes.io~empty-dir", binVolume))
	if err != nil {
		return nil, err
	}
	uid, err := pool.Kubectl(ctx, nil, "-n", harness.Namespace, "get", "pod", name, "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		return nil, err
	}
	for _, v := range volumes {
		if strings.Contains(v, "/"+uid+"/") {
			w.wrapperVolume = v
		}
	}
	if w.wrapperVolume == "" {
		return nil, fmt.Errorf("the pod %s, %s, has no volume %s among %v", name, uid, binVolume, volumes)
	}
	return w, harness.Poll(ctx, "the slots of "+name, func() (bool, error) {
		out, err := pool.AP(ctx, "condor_status", "-af", "Name", "-constraint", fmt.Sprintf(`regexp("@%s(@|$)", Name)`, name))
		return strings.Count(out, "\n") == len(w.slots()), err
	})
}

// ownLogs makes the directory that a pilot without root writes its logs to.
func ownLogs(name string) error {
	if pool.Mode != harness.Rootless {
		return nil
	}
	dir := filepath.Join(pool.State, "log", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	uid := pool.PayloadUID(harness.Ours)
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
}

// programs is a directory of this machine that an open pod's pilot sees as
// programsDirectory.
func (w *target) programs() string { return filepath.Join(pool.State, "attacks", string(w.side)) }

// manifest is the glidein's, with another name, another number of slots, and some
// defences off.
func (w *target) manifest(ctx context.Context) (pod, config map[string]any, err error) {
	if pod, err = get(ctx, "pod/"+harness.Ours.PodName()); err != nil {
		return nil, nil, err
	}
	name := string(w.side)
	delete(pod, "status")
	// A container that does not stop costs this much time.
	object(pod, "spec")["terminationGracePeriodSeconds"] = 5
	pod["metadata"] = map[string]any{"name": name, "namespace": harness.Namespace, "labels": object(pod, "metadata")["labels"]}
	spec := object(pod, "spec")
	var copied string
	own := []any{}
	for _, v := range list(spec, "volumes") {
		switch v["name"] {
		case ownVolume + payloadContainer:
			for _, name := range w.containers() {
				own = append(own, renamed(v, name))
			}
		case "log":
			object(v, "hostPath")["path"] = filepath.Join(pool.State, "log", name)
		case "config":
			copied, _ = object(v, "configMap")["name"].(string)
			object(v, "configMap")["name"] = name
		}
	}
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(slices.DeleteFunc(volumes, func(v any) bool {
		name, _ := v.(map[string]any)["name"].(string)
		return strings.HasPrefix(name, ownVolume)
	}), own...)
	if config, err = get(ctx, "configmap/"+copied); err != nil {
		return nil, nil, err
	}
	config["metadata"] = map[string]any{"name": name, "namespace": harness.Namespace}
	if err := w.configure(object(config, "data")); err != nil {
		return nil, nil, err
	}
	for _, in := range []string{"initContainers", "containers"} {
		var kept []any
		for _, c := range list(spec, in) {
			switch name := fmt.Sprint(c["name"]); {
			case name == payloadContainer:
				c["image"] = pool.Image(pool.DefaultImage)
				for _, name := range w.containers() {
					kept = append(kept, renamed(c, name))
				}
			case name == pilotContainer:
				kept = append(kept, c)
				if len(w.off()) > 0 {
					mount(spec, c, "programs", w.programs(), programsDirectory)
				}
			case in == "initContainers" && c["restartPolicy"] != "Always":
				kept = append(kept, c)
			}
		}
		spec[in] = kept
	}
	for _, name := range w.off() {
		if edit := defence(name).Pod; edit != nil {
			edit(pod)
		}
	}
	return pod, config, nil
}

// configure makes the startd refuse all jobs except those of this package.
func (w *target) configure(files map[string]any) error {
	const file = "90-test.conf"
	text, ok := files[file].(string)
	if !ok {
		return fmt.Errorf("the glidein's configuration has no file %s", file)
	}
	port, err := harness.FreePort()
	if err != nil {
		return err
	}
	w.port = port
	files[file] = text + strings.Join([]string{
		"SHARED_PORT_PORT = " + strconv.Itoa(w.port),
		"POD_STARTER_CONTAINERS = " + strings.Join(w.containers(), ", "),
		fmt.Sprintf("POD_STARTER_SPARES = %d\nPOD_STARTER_PULLERS =", w.pod.Spares), // whatever our execution point has
		fmt.Sprintf("NUM_CPUS = %d\nNUM_SLOTS = %[1]d\nNUM_SLOTS_TYPE_1 = %[1]d", len(w.slots())),
		"START = TARGET.Attacks =?= True",
		"",
	}, "\n")
	return nil
}

// ownVolume begins the names of volumes that one payload container has; its name follows.
const ownVolume = "shm-"

// renamed is a copy of the payload container under the name of a slot, which it has in
// four places, or of the volume that it alone has.
func renamed(c map[string]any, name string) map[string]any {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // it came out of JSON
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(strings.NewReplacer(
		`"name":"`+payloadContainer+`"`, `"name":"`+name+`"`,
		controlDirectory+"/"+payloadContainer+`"`, controlDirectory+"/"+name+`"`,
		"nonce-"+payloadContainer+"'", "nonce-"+name+"'",
		`"`+ownVolume+payloadContainer+`"`, `"`+ownVolume+name+`"`,
	).Replace(string(text))), &out); err != nil {
		panic(err)
	}
	return out
}

// mount gives a container a directory of this machine.
func mount(spec, container map[string]any, name, host, path string) {
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(volumes, map[string]any{"name": name, "hostPath": map[string]any{"path": host, "type": "DirectoryOrCreate"}})
	mounts, _ := container["volumeMounts"].([]any)
	container["volumeMounts"] = append(mounts, map[string]any{"name": name, "mountPath": path})
}

func get(ctx context.Context, what string) (map[string]any, error) {
	text, err := pool.Kubectl(ctx, nil, "-n", harness.Namespace, "get", what, "-o", "json")
	if err != nil {
		return nil, err
	}
	var o map[string]any
	return o, json.Unmarshal([]byte(text), &o)
}

// program puts a variant of a program at the path. Programs that run already are not
// changed.
func (w *target) program(name string, off []string, path string) error {
	built, err := variants.get(name, off)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o755); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// set switches off the defences of a setting, in code that is started anew too, and
// everything else on again.
func (w *target) set(t *testing.T, s Setting) {
	t.Helper()
	// If both slots are free, the first payload container is used first.
	if err := harness.WaitNone(soon(t, patience), pool.Starters(w.side)); err != nil {
		t.Fatal(err)
	}
	off := s.off(pool.Mode)
	w.installSite(t)
	if err := w.program(wrapperProgram, off, filepath.Join(w.wrapperVolume, wrapperProgram)); err != nil {
		t.Fatal(err)
	}
	if err := w.installStarter(t.Context(), off); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	mode := "0700"
	if pool.Mode == harness.Rootless {
		mode = "0750"
	}
	for _, name := range off {
		d := defence(name)
		if d.Config != "" {
			lines.WriteString(d.Config + "\n")
		}
		if d.Pilot != nil {
			mode = ""
			w.inPilot(t, nil, d.Pilot...)
		}
		if d.Beside != nil {
			w.beside(t, d.Beside)
		}
	}
	if mode != "" {
		w.inPilot(t, nil, "chmod", mode, controlDirectory)
	}
	config := "/etc/condor/config.d/99-attacks.conf"
	if pool.Mode == harness.Rootless {
		config = "/var/lib/condor/etc/config.d/99-attacks.conf"
	}
	if err := os.WriteFile(w.visible(t, config), []byte(siteConfig+lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// visible is the path on this machine of a file that the pilot container has. A command
// in that container may do no more there than the container may.
func (w *target) visible(t *testing.T, path string) string {
	t.Helper()
	inside := pool.Inside(w.side)
	master, err := harness.One("master of "+string(w.side), func(p harness.Process) bool { return inside(p) && p.Comm == "condor_master" })
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/proc/%d/root%s", master.PID, path)
}

// installStarter replaces the starter of the pilot for later activations.
func (w *target) installStarter(ctx context.Context, off []string) error {
	built, err := variants.get(starterProgram, off)
	if err != nil {
		return err
	}
	f, err := os.Open(built)
	if err != nil {
		return err
	}
	defer f.Close()
	path := programsDirectory + "/" + starterProgram
	_, err = pool.EPInput(ctx, w.side, f, "sh", "-c", `cat > "$1.new" && chmod 0755 "$1.new" && mv "$1.new" "$1"`, "install", path)
	return err
}

func (w *target) inPilot(t *testing.T, in io.Reader, argv ...string) {
	t.Helper()
	if _, err := pool.EPInput(t.Context(), w.side, in, argv...); err != nil {
		t.Fatal(err)
	}
}

// beside runs a command in the pilot until the test ends, and waits until everybody can
// see it.
func (w *target) beside(t *testing.T, argv []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, err := pool.EPInput(ctx, w.side, in, argv...); err != nil && ctx.Err() == nil {
			t.Errorf("%q: %v", argv, err)
		}
	}()
	t.Cleanup(func() {
		out.Close()
		cancel()
		<-ended
	})
	inside := pool.Inside(w.side)
	if _, err := harness.WaitSome(t.Context(), 1, func(p harness.Process) bool {
		return inside(p) && strings.Contains(strings.Join(p.Args, " "), "careless")
	}); err != nil {
		t.Fatal(err)
	}
}

// removeTargets also removes targets that an earlier run left.
func removeTargets(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	argv := []string{"-n", harness.Namespace, "delete", "--ignore-not-found", "--grace-period=1"}
	for _, p := range Pods {
		argv = append(argv, "pod/"+p.Name, "configmap/"+p.Name)
	}
	_, err := pool.Kubectl(ctx, nil, argv...)
	return errors.Join(err, os.RemoveAll(filepath.Join(pool.State, "attacks")))
}
