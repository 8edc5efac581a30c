//go:build pool

package e2e

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// TestResizePending: the kubelet takes the changes of a pod's resources together, and judges them by the requests. One who raises
// a request beyond what the node has, or has left, makes it put off the limits of jobs as well. Then a job that needs more memory goes
// back to the queue, its user and the pod's operator read why, and it runs when the kubelet can do as told.
func TestResizePending(t *testing.T) {
	oursOnly(t)
	if pool.Mode == harness.Rootless {
		t.Skip("a pilot without root has one payload container, and so no slots to cut")
	}
	pod := resizablePod(t, "pending", "POD_STARTER_MAX_REST = 300")
	kubectl := func(in string, args ...string) string {
		t.Helper()
		out, err := pool.Kubectl(soon(t, patience), strings.NewReader(in), append([]string{"-n", harness.Namespace}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// As an admin or an autoscaler would, in another container of the pod.
	request := func(memory int64) {
		t.Helper()
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "pilot",
			"resources": map[string]any{"requests": map[string]any{"memory": strconv.FormatInt(memory, 10)}}}}}})
		if err != nil {
			t.Fatal(err)
		}
		kubectl("", "patch", "pod/"+string(pod), "--subresource=resize", "-p", string(patch))
	}
	condition := func() string {
		t.Helper()
		return kubectl("", "get", "pod/"+string(pod), "-o", `jsonpath={.status.conditions[?(@.type=="PodResizePending")].reason}`)
	}
	await := func(want string) {
		t.Helper()
		err := harness.Poll(soon(t, patience), fmt.Sprintf("the kubelet to say %q of the change", want), func() (bool, error) { return condition() == want, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	has, err := strconv.ParseInt(strings.TrimSuffix(kubectl("", "get", "node", kubectl("", "get", "pod/"+string(pod), "-o", "jsonpath={.spec.nodeName}"),
		"-o", "jsonpath={.status.allocatable.memory}"), "Ki"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	has *= 1 << 10
	const usual = 64 << 20

	for _, tt := range []struct {
		reason, words  string
		request, other int64 // in bytes
	}{
		{"Infeasible", "Node didn't have enough capacity", has + 1<<30, 0},
		{"Deferred", "Node didn't have enough resource", has * 6 / 10, has * 6 / 10},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if tt.other > 0 {
				kubectl(fillerPod(t, pod, tt.other), "create", "-f", "-")
				remove := func() {
					kubectl("", "delete", "pod/filler", "--ignore-not-found", "--grace-period=1")
				}
				defer remove()
				kubectl("", "wait", "--for=condition=Ready", "--timeout=60s", "pod/filler")
			}
			request(tt.request)
			await(tt.reason)
			job := askFor(t, pod, "memory=300 out=done", "384")
			failed, err := job.WaitEvent(soon(t, patience), harness.EventRemoteError, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, words := range []string{"cannot get the memory that the job's slot has", "PodResizePending " + tt.reason, tt.words} {
				if !strings.Contains(failed.Text(), words) {
					t.Errorf("the job's user reads %q, without %q", failed.Text(), words)
				}
			}
			log := kubectl("", "logs", string(pod), "-c", "pilot")
			if !strings.Contains(log, "job="+job.ID()) || !strings.Contains(log, "cause=NotResized") || !strings.Contains(log, tt.words) {
				t.Errorf("the pod's operator does not read why job %s did not run:\n%s", job.ID(), log)
			}
			err = harness.Poll(soon(t, patience), "a slot that rests, and says why", func() (bool, error) {
				rest, err := pool.AP(t.Context(), "condor_status", "-af", "PodStarterRestReason", "-constraint", fmt.Sprintf(`regexp("@%s(@|$)", Name)`, pod))
				return strings.Contains(rest, tt.words), err
			})
			if err != nil {
				t.Error(err)
			}
			// One that needs no more than the container has can run.
			jobTool(t, job, "condor_hold")
			mustExit(t, askFor(t, pod, "out=done", "256"), 0)
			if tt.other > 0 {
				kubectl("", "delete", "pod/filler", "--grace-period=1")
			}
			request(usual)
			await("")
			jobTool(t, job, "condor_release")
			mustExit(t, job, 0)
			for _, name := range []string{"payload", "payload-2"} {
				if got := limitIn(t, pod, name); got != "256Mi" {
					t.Errorf("after the job, container %s has a limit of %s, want 256Mi", name, got)
				}
			}
		})
	}
}

// fillerPod takes memory of the node of another pod, by its request.
func fillerPod(t *testing.T, beside harness.Side, memory int64) string {
	t.Helper()
	node, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", "pod/"+string(beside), "-o", "jsonpath={.spec.nodeName}")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "filler", "namespace": harness.Namespace},
		"spec": map[string]any{
			"nodeName": node, "hostNetwork": true, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
			"tolerations": []any{map[string]any{"operator": "Exists"}},
			"containers": []any{map[string]any{"name": "filler", "image": pool.Image("pause"),
				"resources": map[string]any{"requests": map[string]any{"memory": strconv.FormatInt(memory, 10)}}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
