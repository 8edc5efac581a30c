//go:build pool

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// TestResize: a payload container has the memory of its job's slot, more and less than its own, and its own again afterwards.
// The pilot's token can do no more than that.
func TestResize(t *testing.T) {
	oursOnly(t)
	if pool.Mode == harness.Rootless {
		t.Skip("a pilot without root has one payload container, and so no slots to cut")
	}
	pod := resizablePod(t, "resized")
	if got := offered(t, pod, 1)["slot1"]; !strings.HasPrefix(got, "4 384 ") {
		t.Errorf("the slot offers %s, want 4 CPUs and 384 MiB, as much as both containers request", got)
	}

	limit := func(container string) string { return limitIn(t, pod, container) }
	ask := func(steps, memory string) harness.Job { return askFor(t, pod, steps, memory) }
	large := ask("memory=300 out=done", "384")
	mustExit(t, large, 0)
	if got := output(t, large, "out"); !strings.Contains(got, "done") {
		t.Errorf("the job that needs more memory than its container had prints %q", got)
	}
	for _, name := range []string{"payload", "payload-2"} {
		if got := limit(name); got != "256Mi" {
			t.Errorf("after the job, container %s has a limit of %s, want 256Mi", name, got)
		}
	}
	run, err := large.Run(soon(t, patience), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(run.Text(), "Changed the limits of the payload container"); got != 2 {
		t.Errorf("the limits were changed %d times, want once before the job and once after\n%s", got, run.Text())
	}
	// Less than its own, but not less than it requests.
	end := ending(t, ask("eat=slowly", "128"))
	if !end.Held || end.Code != holdJobOutOfResources || end.Subcode != subcodeMemory || !strings.Contains(end.Reason, "memory limit of 192 megabytes") {
		t.Errorf("%s; want held with code %d, subcode %d, for a limit of 192 megabytes", end, holdJobOutOfResources, subcodeMemory)
	}

	// If its container may not have so much, the job goes back to the queue, and its user reads why.
	most := func(memory string) {
		t.Helper()
		if _, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "annotate", "--overwrite", "pod/resized", "resize.podstarter/memory="+memory); err != nil {
			t.Fatal(err)
		}
	}
	most("300Mi")
	refused := ask("memory=300 out=done", "384")
	failed, err := refused.WaitEvent(soon(t, patience), harness.EventRemoteError, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"cannot get the memory that the job's slot has", "podstarter-pilot"} {
		if !strings.Contains(failed.Text(), words) {
			t.Errorf("the job's user reads %q, without %q", failed.Text(), words)
		}
	}
	most("512Mi")
	mustExit(t, refused, 0)

	token, err := pool.PilotToken(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	pilot, err := pool.WithToken(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	in := func(list, name, resources string) string {
		return fmt.Sprintf(`{"spec":{%q:[{"name":%q,"resources":%s}]}}`, list, name, resources)
	}
	for _, tt := range []struct{ name, pod, body, want string }{
		{"more memory", "resized", in(pool.PayloadList(), "payload", `{"limits":{"memory":"512Mi"}}`), allowed},
		{"more CPU", "resized", in(pool.PayloadList(), "payload-2", `{"limits":{"cpu":"1900m"}}`), allowed},
		{"too much memory", "resized", in(pool.PayloadList(), "payload", `{"limits":{"memory":"513Mi"}}`), byPolicy},
		{"too much CPU", "resized", in(pool.PayloadList(), "payload-2", `{"limits":{"cpu":"2001m"}}`), byPolicy},
		{"requests", "resized", in(pool.PayloadList(), "payload", `{"requests":{"memory":"200Mi"}}`), byPolicy},
		{"the pilot", "resized", in("containers", "pilot", `{"limits":{"memory":"300Mi","cpu":"1"}}`), byPolicy},
		{"no limit any more", "resized", in(pool.PayloadList(), "payload", `{"limits":{"memory":null}}`), "limits"}, // the API server itself
		{"a pod without annotations", side.PodName(), `{}`, byPolicy},
	} {
		code, text, err := pilot.Ask(t.Context(), http.MethodPatch, "/api/v1/namespaces/"+harness.Namespace+"/pods/"+tt.pod+"/resize?dryRun=All", merge, tt.body)
		if err != nil || (tt.want == allowed) != (code == http.StatusOK) || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %d %.300s (%v), want %q", tt.name, code, text, err, tt.want)
		}
	}
	// Kubernetes 1.36 and later; older API servers leave such a change away.
	for name, body := range map[string]string{
		"limits of the pod as a whole":   `{"spec":{"resources":{"limits":{"cpu":"4","memory":"7Gi"}}}}`,
		"requests of the pod as a whole": `{"spec":{"resources":{"requests":{"cpu":"1","memory":"7Gi"},"limits":{"cpu":"4","memory":"7Gi"}}}}`,
	} {
		code, text, err := pilot.Ask(t.Context(), http.MethodPatch, "/api/v1/namespaces/"+harness.Namespace+"/pods/resized/resize?dryRun=All", merge, body)
		if err != nil || code == http.StatusOK && strings.Contains(text, "7Gi") {
			t.Errorf("%s: %d %.300s (%v), want a denial", name, code, text, err)
		}
	}
	checkSizes(t, pod, `warn a job can get a slot with CPUs 4, but the pod's annotation resize.podstarter/cpu lets its container have "2": such jobs go back to the queue`,
		"warn slots offer 4 CPUs together, but the payload containers for them may use 20m (the sum of resources.requests.cpu), so jobs are slower than they expect; let condor_config.d/55-podstarter-size.conf set NUM_CPUS, or set it to 2")
}

// resizablePod starts a pod as the component makes it: one slot that is cut, and two payload containers, each with 192 MiB
// requested, a limit of 256 MiB, and 512 MiB at most.
func resizablePod(t *testing.T, name string, more ...string) harness.Side {
	t.Helper()
	component := theOne(t, site(t, "resources: [../glidein]\ncomponents: [../components/resize]\n"), "Pod")
	return sizedPod(t, name, 2, map[string]string{"cpu": "1", "memory": "256Mi", "ephemeral-storage": "1Gi"}, func(pod map[string]any) {
		for _, name := range []string{"payload", "payload-2"} {
			container(pod, name)["resources"].(map[string]any)["requests"] = map[string]any{"cpu": "10m", "memory": "192Mi", "ephemeral-storage": "0"}
		}
		pod["metadata"].(map[string]any)["annotations"] = map[string]any{"resize.podstarter/cpu": "2", "resize.podstarter/memory": "512Mi"}
		container(pod, "pilot")["env"] = container(component, "pilot")["env"]
		reachAPIServer(t, container(pod, "pilot"))
	}, slices.Concat(resizeKnobs(t), []string{"NUM_CPUS = 4", "POD_STARTER_CONTAINERS = payload, payload-2", "SLOT1_1_USER = slot1", "SLOT1_2_USER = slot2"}, more)...)
}

// limitIn is a payload container's limit of memory in the pod's spec.
func limitIn(t *testing.T, pod harness.Side, container string) string {
	t.Helper()
	text, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", "pod/"+string(pod), "-o",
		fmt.Sprintf("jsonpath={.spec.%s[?(@.name=='%s')].resources.limits.memory}", pool.PayloadList(), container))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// askFor submits a job that only this pod takes, with a memory in MiB.
func askFor(t *testing.T, pod harness.Side, steps, memory string) harness.Job {
	t.Helper()
	s := job(steps, fmt.Sprintf(`+Sized = "%s"`, pod), "request_memory = "+memory)
	s.Side = pod
	return submit(t, s)[0]
}

// resizeKnobs are the lines of the component's configuration.
func resizeKnobs(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(pool.Root, "deploy", "components", "resize", "config", "70-resize.conf"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// reachAPIServer gives a pilot of deploy the address that the pool's own pilot has.
func reachAPIServer(t *testing.T, pilot map[string]any) {
	t.Helper()
	text, err := pool.EP(t.Context(), harness.Ours, "sh", "-c", `echo "$KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT"`)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(strings.TrimSpace(text), " ")
	env, _ := pilot["env"].([]any)
	pilot["env"] = append(env, map[string]any{"name": "KUBERNETES_SERVICE_HOST", "value": host}, map[string]any{"name": "KUBERNETES_SERVICE_PORT", "value": port})
}
