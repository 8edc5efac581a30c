//go:build pool

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// sizedNamespace is one whose pods must state their size: with a quota, the API server refuses a container that states none
// of a resource that the quota bounds. It stays: without a controller manager nobody could delete it.
const sizedNamespace = `
apiVersion: v1
kind: Namespace
metadata: {name: e2e-quota}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: e2e-quota}
`

// TestQuota: where a namespace has a quota and a LimitRange, every pod of deploy/ is admitted as it is, and one that states no
// size is not.
func TestQuota(t *testing.T) {
	oursOnly(t)
	example := func(kind string) string {
		text, err := pool.Example("admin/size.md", "kind: "+kind)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	quota, limitRange := example("ResourceQuota"), example("LimitRange")
	apply := func(text string, more ...string) error {
		_, err := pool.Kubectl(t.Context(), strings.NewReader(text), append([]string{"-n", "e2e-quota", "apply", "-f", "-"}, more...)...)
		return err
	}
	for _, text := range []string{sizedNamespace, quota} {
		if err := apply(text); err != nil {
			t.Fatal(err)
		}
	}
	// An earlier run left it, and it gives sizes to those that state none.
	if _, err := pool.Kubectl(t.Context(), nil, "-n", "e2e-quota", "delete", "limitrange", "glidein", "--ignore-not-found"); err != nil {
		t.Fatal(err)
	}
	// The quota holds from when its status says so, which is the work of a controller that this cluster may lack.
	text, err := pool.Kubectl(t.Context(), nil, "-n", "e2e-quota", "get", "resourcequota", "glidein", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var live map[string]any
	if err := json.Unmarshal([]byte(text), &live); err != nil {
		t.Fatal(err)
	}
	hard := spec(live)["hard"].(map[string]any)
	used := map[string]any{}
	for name := range hard {
		used[name] = "0"
	}
	status, _ := json.Marshal(map[string]any{"status": map[string]any{"hard": hard, "used": used}})
	if _, err := pool.Kubectl(t.Context(), nil, "-n", "e2e-quota", "patch", "resourcequota", "glidein", "--subresource=status", "--type=merge", "-p", string(status)); err != nil {
		t.Fatal(err)
	}
	create := func(pod map[string]any) error {
		pod["metadata"].(map[string]any)["namespace"] = "e2e-quota"
		delete(spec(pod), "serviceAccountName") // the namespace has none but its own
		text, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		_, err = pool.Kubectl(t.Context(), bytes.NewReader(text), "create", "--dry-run=server", "-f", "-")
		return err
	}
	// The API server learns of a quota by a watch.
	sizeless := func(t *testing.T, without string) error {
		pod := theOne(t, rendered(t, "glidein"), "Pod")
		container(pod, without)["resources"] = map[string]any{}
		if without == "pilot" {
			container(pod, without)["env"] = []any{}
		}
		return create(pod)
	}
	err = harness.Poll(soon(t, patience), "the quota", func() (bool, error) {
		err := sizeless(t, "payload")
		return err != nil && strings.Contains(err.Error(), "must specify"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"payload", "pilot", "prepare"} {
		if err := sizeless(t, name); err == nil || !strings.Contains(err.Error(), "must specify") || !strings.Contains(err.Error(), name) {
			t.Errorf("a pod whose container %s states no size: got %v, want a refusal", name, err)
		}
	}
	if err := apply(limitRange); err != nil {
		t.Fatal(err)
	}
	// The same holds for the limits.
	err = harness.Poll(soon(t, patience), "the LimitRange", func() (bool, error) {
		pod := theOne(t, rendered(t, "glidein"), "Pod")
		container(pod, "payload")["resources"].(map[string]any)["limits"].(map[string]any)["memory"] = "33Gi"
		err := create(pod)
		return err != nil && strings.Contains(err.Error(), "maximum memory usage per Container is 32Gi"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pods := 0
	for _, dir := range kustomizations(t) {
		t.Run(dir, func(t *testing.T) {
			for _, o := range rendered(t, dir) {
				if o["kind"] == "Job" {
					o = template(o)
				}
				if o["kind"] != "Pod" {
					continue
				}
				pods++
				if err := create(o); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if pods < 2 {
		t.Errorf("deploy/ has %d pods; are they looked for in the right place?", pods)
	}
	t.Run("spares", func(t *testing.T) {
		if err := create(theOne(t, site(t, "resources: [../glidein]\ncomponents: [../components/spares, ../components/sidecars, ../components/sidecars/spares]\n"), "Pod")); err != nil {
			t.Error(err)
		}
	})
}

// sizedPod starts a copy of the glidein pod, of which the payload containers have limits, and whose startd takes only jobs that
// say so. It has no slots but those that follow from the limits.
func sizedPod(t *testing.T, name string, payloads int, limits map[string]string, edit func(pod map[string]any), lines ...string) harness.Side {
	t.Helper()
	get := func(what string) map[string]any {
		t.Helper()
		text, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", what, "-o", "json")
		if err != nil {
			t.Fatal(err)
		}
		var o map[string]any
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	live := get("pod/" + harness.Ours.PodName())
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": live["spec"],
		"metadata": map[string]any{"name": name, "namespace": harness.Namespace}}
	var config map[string]any
	var volumes []any
	for _, v := range spec(pod)["volumes"].([]any) {
		v := v.(map[string]any)
		switch {
		case v["name"] == "config":
			from := v["configMap"].(map[string]any)
			config = get("configmap/" + from["name"].(string))
			from["name"] = name
		case v["name"] == "log":
			v["hostPath"].(map[string]any)["path"] = pool.State + "/log/" + name
		case strings.HasPrefix(v["name"].(string), "shm-"):
			continue
		}
		volumes = append(volumes, v)
	}
	pilot := container(pod, "pilot")
	env := slices.DeleteFunc(pilot["env"].([]any), func(e any) bool { return strings.HasPrefix(e.(map[string]any)["name"].(string), "PAYLOAD_") })
	// As deploy/glidein has it.
	for _, e := range container(theOne(t, rendered(t, "glidein"), "Pod"), "pilot")["env"].([]any) {
		if strings.HasPrefix(e.(map[string]any)["name"].(string), "PAYLOAD_") {
			env = append(env, e)
		}
	}
	pilot["env"] = env
	first := container(pod, "payload")
	// The node is small, and its kubelet knows of no disk to request.
	first["resources"] = map[string]any{"limits": limits, "requests": map[string]string{"cpu": "1m", "memory": "16Mi", "ephemeral-storage": "0"}}
	first["image"] = pool.Image(pool.DefaultImage)
	var containers []any
	for i := range payloads {
		name := "payload"
		if i > 0 {
			name += "-" + strconv.Itoa(i+1)
		}
		volumes = append(volumes, map[string]any{"name": "shm-" + name, "emptyDir": map[string]any{"medium": "Memory", "sizeLimit": "16Mi"}})
		text, _ := json.Marshal(first)
		var c map[string]any
		if err := json.Unmarshal([]byte(strings.NewReplacer(`"name":"payload"`, `"name":"`+name+`"`, `control/payload"`, `control/`+name+`"`,
			"nonce-payload'", "nonce-"+name+"'", `"shm-payload"`, `"shm-`+name+`"`).Replace(string(text))), &c); err != nil {
			t.Fatal(err)
		}
		containers = append(containers, c)
	}
	list := pool.PayloadList()
	others := slices.DeleteFunc(spec(pod)[list].([]any), isPayload)
	spec(pod)[list] = append(others, containers...)
	spec(pod)["volumes"] = volumes
	spec(pod)["terminationGracePeriodSeconds"] = 2
	if edit != nil {
		edit(pod)
	}

	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range containers {
		names = append(names, c.(map[string]any)["name"].(string))
	}
	files := config["data"].(map[string]any)
	var kept []string
	for line := range strings.Lines(files["90-test.conf"].(string)) {
		if name, _, _ := strings.Cut(line, " "); name != "NUM_CPUS" && name != "MEMORY" && name != "DISK" {
			kept = append(kept, line)
		}
	}
	files["90-test.conf"] = strings.Join(kept, "") + strings.Join(append([]string{
		fmt.Sprintf("SHARED_PORT_PORT = %d", port),
		"POD_STARTER_CONTAINERS = " + strings.Join(names, ", "),
		"POD_STARTER_SPARES = 0\nPOD_STARTER_PULLERS =",
		fmt.Sprintf("NUM_SLOTS = %d\nNUM_SLOTS_TYPE_1 = %[1]d", payloads),
		"START = TARGET.Sized =?= \"" + name + "\"",
	}, lines...), "\n") + "\n"
	config["metadata"] = map[string]any{"name": name, "namespace": harness.Namespace}

	token, err := pool.PilotToken(t.Context(), side)
	if err != nil {
		t.Fatal(err)
	}
	client, err := pool.WithToken(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	loosen(t, client)
	remove := func() error {
		_, err := pool.Kubectl(background(t), nil, "-n", harness.Namespace, "delete", "pod/"+name, "configmap/"+name, "--ignore-not-found", "--wait")
		return err
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	for _, o := range []any{config, pod} {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Kubectl(t.Context(), bytes.NewReader(text), "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Kubectl(soon(t, patience), nil, "-n", harness.Namespace, "wait", "--for=condition=Ready", "--timeout=2m", "pod/"+name); err != nil {
		t.Fatal(err)
	}
	if err := pool.AddSide(t.Context(), harness.Side(name)); err != nil {
		t.Fatal(err)
	}
	return harness.Side(name)
}

// offered are some attributes of the slots of a pod, by the slot's name without the pod's.
func offered(t *testing.T, pod harness.Side, slots int) (all map[string]string) {
	t.Helper()
	err := harness.Poll(soon(t, patience), "the slots of "+string(pod), func() (bool, error) {
		out, err := pool.AP(t.Context(), "condor_status", "-af", "Name", "Cpus", "Memory", "Disk", "-constraint", fmt.Sprintf(`regexp("@%s(@|$)", Name)`, pod))
		all = map[string]string{}
		for line := range strings.Lines(out) {
			name, size, _ := strings.Cut(strings.TrimSpace(line), " ")
			name, _, _ = strings.Cut(name, "@")
			all[name] = size
		}
		return len(all) == slots, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSlotsOfferLimits: a slot offers what its payload container may use, whatever pilot and node have.
func TestSlotsOfferLimits(t *testing.T) {
	oursOnly(t)
	if pool.Mode == harness.Rootless {
		t.Skip("a pilot without root has one payload container, and so no two slots")
	}
	pod := sizedPod(t, "sized", 2, map[string]string{"cpu": "1500m", "memory": "300Mi", "ephemeral-storage": "1Gi"}, nil,
		"SLOT_TYPE_1_PARTITIONABLE = False", "SLOT_TYPE_1 = cpus=auto, memory=auto, disk=auto, swap=auto")
	if got, want := offered(t, pod, 2), map[string]string{"slot1": "1 300 1048576", "slot2": "1 300 1048576"}; !maps.Equal(got, want) {
		t.Errorf("slots offer %v, want %v", got, want)
	}
	checkSizes(t, pod, "ok a job gets at most 1 CPUs and 300 MiB, which a payload container may use")
	// The job cannot use more: the kubelet sees to that.
	s := job("eat=slowly", `+Sized = "sized"`, "request_memory = 300")
	s.Side = pod
	job := submit(t, s)[0]
	end := ending(t, job)
	if !end.Held || end.Code != holdJobOutOfResources || end.Subcode != subcodeMemory || !strings.Contains(end.Reason, "memory limit of 300 megabytes") {
		t.Errorf("%s; want held with code %d, subcode %d, for a limit of 300 megabytes", end, holdJobOutOfResources, subcodeMemory)
	}
}

// TestCutSlotsOfferLimits: a partitionable slot offers what all payload containers may use together, and gives no job more
// than one of them may.
func TestCutSlotsOfferLimits(t *testing.T) {
	oursOnly(t)
	if pool.Mode == harness.Rootless {
		t.Skip("a pilot without root has one payload container")
	}
	pod := sizedPod(t, "sized-cut", 2, map[string]string{"cpu": "1500m", "memory": "300Mi", "ephemeral-storage": "1Gi"}, nil,
		"NUM_SLOTS = 1", "NUM_SLOTS_TYPE_1 = 1", "SLOT_TYPE_1_PARTITIONABLE = True", "SLOT_TYPE_1 = 100%", "SLOT1_1_USER = slot1", "SLOT1_2_USER = slot2")
	if got, want := offered(t, pod, 1), map[string]string{"slot1": "3 600 2097152"}; !maps.Equal(got, want) {
		t.Errorf("the slot offers %v, want %v", got, want)
	}
	checkSizes(t, pod, "ok a job gets at most 1 CPUs and 256 MiB, which a payload container may use")
	ask := func(memory string) harness.Job {
		s := job("out=x", `+Sized = "sized-cut"`, "request_memory = "+memory)
		s.Side = pod
		return submit(t, s)[0]
	}
	// Of two jobs in the queue the negotiator looks at the earlier one first.
	large, small := ask("400"), ask("200")
	mustExit(t, small, 0)
	if events, err := large.Events(); err != nil || slices.ContainsFunc(events, func(e harness.Event) bool { return e.Number == harness.EventExecute }) {
		t.Errorf("a job that requests more than a container may use has run (%v)", err)
	}
}

// checkSizes compares what -check says about sizes.
func checkSizes(t *testing.T, pod harness.Side, want ...string) {
	t.Helper()
	out, err := pool.Kubectl(soon(t, patience), nil, "-n", harness.Namespace, "exec", string(pod), "-c", "pilot", "--",
		"/opt/podstarter/bin/condor_pod_starter", "-check", "-json")
	var all struct {
		Findings []struct{ Grade, What, Detail, Fix string }
	}
	if jsonErr := json.Unmarshal([]byte(out), &all); jsonErr != nil {
		t.Fatalf("%v, %v\n%s", err, jsonErr, out)
	}
	var got []string
	for _, f := range all.Findings {
		if f.What == "sizes" {
			got = append(got, strings.ToLower(f.Grade)+" "+f.Detail)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("-check says of sizes %q, want %q", got, want)
	}
}
