//go:build pool

package manyslots

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// calls are what the starters ask the API server for during f.
func calls(t *testing.T, f func()) []harness.APICall {
	t.Helper()
	log, err := pool.APILog()
	if err != nil {
		t.Fatal(err)
	}
	f()
	made, err := log.Calls()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// atOnce is how many calls of a verb were open at the same time at most.
func atOnce(all []harness.APICall, verb string) int {
	most := 0
	for _, a := range all {
		open := 0
		for _, b := range all {
			if a.Verb == verb && b.Verb == verb && !b.Began.After(a.Began) && (b.Ended.IsZero() || b.Ended.After(a.Began)) {
				open++
			}
		}
		most = max(most, open)
	}
	return most
}

func verbs(all []harness.APICall, verb string) int {
	return count(all, func(c harness.APICall) bool { return c.Verb == verb })
}

// TestBeginAtOnce: all slots are claimed at once. Their starters share patches and a watch.
func TestBeginAtOnce(t *testing.T) {
	began := time.Now()
	made := calls(t, func() {
		jobs := crowd(t, "sleep 5")
		allRun(t, jobs)
		t.Logf("%d jobs run after %v", len(jobs), time.Since(began).Round(100*time.Millisecond))
		allEnd(t, jobs)
	})
	t.Logf("%d patches, %d watches, %d of them at once, %d gets", verbs(made, "patch"), verbs(made, "watch"), atOnce(made, "watch"), verbs(made, "get"))
	if n := verbs(made, "patch"); n > 2*pool.Slots {
		t.Errorf("%d patches for %d jobs", n, pool.Slots)
	}
	// One that hands over and one that takes over.
	if n := atOnce(made, "watch"); n > 3 {
		t.Errorf("%d watches at once", n)
	}
	for _, c := range made {
		if c.Code >= 400 && c.Code != http.StatusConflict {
			t.Errorf("a %s was answered with %d", c.Verb, c.Code)
		}
	}
	nothingRuns(t)
}

// refusal makes the API server ask somebody whether the pilot may patch.
const refusal = `{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "refusal"},
"webhooks": [{"name": "refusal.podstarter.example", "clientConfig": {"url": %q, "caBundle": %q}, "failurePolicy": "Ignore", "sideEffects": "None",
"admissionReviewVersions": ["v1"], "matchConditions": [{"name": "pilot", "expression": "request.userInfo.username == 'system:serviceaccount:%s:glidein'"}],
"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}]}]}`

// refuse answers each of these questions with 429, as the API server itself does when it has too much to do.
func refuse(w http.ResponseWriter, r *http.Request) {
	var review struct{ Request struct{ UID string } }
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": map[string]any{
		"uid": review.Request.UID, "allowed": false,
		"status": map[string]any{"code": http.StatusTooManyRequests, "reason": "TooManyRequests", "message": "too many requests, please try again later"},
	}})
}

// TestRefused: the API server has no time for the pilot. The jobs begin when it has.
func TestRefused(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(refuse))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	object := fmt.Sprintf(refusal, server.URL, base64.StdEncoding.EncodeToString(ca), harness.Namespace)
	end := func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := pool.Kubectl(ctx, strings.NewReader(object), "delete", "--ignore-not-found", "-f", "-"); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	made := calls(t, func() {
		if _, err := pool.Kubectl(t.Context(), strings.NewReader(object), "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
		jobs := crowd(t, "sleep 5")
		log, err := pool.APILog()
		if err != nil {
			t.Fatal(err)
		}
		err = harness.Poll(soon(t), "a refusal for each starter", func() (bool, error) {
			all, err := log.Calls()
			return refused(all) >= pool.Slots, err
		})
		if err != nil {
			t.Fatal(err)
		}
		end()
		allEnd(t, jobs)
	})
	t.Logf("%d of %d calls were refused", refused(made), len(made))
	nothingRuns(t)
}

func refused(all []harness.APICall) int {
	return count(all, func(c harness.APICall) bool { return c.Code == http.StatusTooManyRequests })
}

// TestEndAtOnce: all jobs end in the same second, while the kubelet is away. The next jobs
// begin when it is there again.
func TestEndAtOnce(t *testing.T) {
	jobs := crowd(t, "while [ ! -e /dev/shm/go ]; do sleep 0.5; done")
	t.Cleanup(func() { _, _ = pool.EP(context.Background(), harness.Ours, "rm", "-f", "/dev/shm/go") })
	allRun(t, jobs)
	kubelet, err := harness.One("kubelet", func(p harness.Process) bool {
		return p.Comm == "kubelet" && slices.ContainsFunc(p.Args, func(a string) bool { return strings.Contains(a, pool.State+"/") })
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := harness.Kill(kubelet, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := pool.EP(t.Context(), harness.Ours, "touch", "/dev/shm/go"); err != nil {
		t.Fatal(err)
	}
	allEnd(t, jobs)
	t.Logf("all have ended after %v", time.Since(began).Round(100*time.Millisecond))
	nothingRuns(t)
	log, err := pool.APILog()
	if err != nil {
		t.Fatal(err)
	}
	next := crowd(t, "sleep 1")
	err = harness.Poll(soon(t), "a binding that waits for the kubelet", func() (bool, error) {
		made, err := log.Calls()
		return verbs(made, "watch") > 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.Up(soon(t), "--cluster-only"); err != nil { // a new kubelet
		t.Fatal(err)
	}
	allEnd(t, next)
}

// TestPodDeleted: all jobs are told, their schedd hears of it, and all processes of pilot and jobs end
// within the pod's grace period. The pod's own process may stay for minutes, since containerd loses
// track of ends that come at once (docs/operator/troubleshooting.md). It comes last, since it leaves no pod.
func TestPodDeleted(t *testing.T) {
	jobs := crowd(t, "sleep 1000")
	allRun(t, jobs)
	var grace int
	pod := harness.Ours.PodName()
	text, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", "pod", pod, "-o", "jsonpath={.spec.terminationGracePeriodSeconds}")
	if err == nil {
		_, err = fmt.Sscan(text, &grace)
	}
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "delete", "pod", pod, "--wait=false"); err != nil {
		t.Fatal(err)
	}
	ctx := soon(t)
	for _, job := range jobs {
		events, err := job.WaitEvents(ctx, "an eviction", func(events []harness.Event) bool {
			return count(events, numbered(harness.EventEvicted, harness.EventDisconnected, harness.EventShadowException)) > 0
		})
		if err != nil {
			t.Fatal(err)
		}
		if count(events, numbered(harness.EventEvicted)) != 1 {
			t.Errorf("job %s: %s", job.ID(), harness.Headlines(events))
		}
	}
	told := time.Since(began)
	if err := harness.WaitNone(ctx, pool.Payloads(harness.Ours, pool.PayloadUsers())); err != nil {
		t.Error(err)
	}
	jobsGone := time.Since(began)
	inPod := pool.InPod(harness.Ours)
	if err := harness.WaitNone(ctx, func(p harness.Process) bool { return inPod(p) && p.Comm != "pause" }); err != nil {
		t.Error(err)
	}
	processesGone := time.Since(began)
	if _, err := pool.Kubectl(ctx, nil, "-n", harness.Namespace, "wait", "--for=delete", "pod/"+pod, "--timeout=240s"); err != nil {
		t.Error(err)
	}
	t.Logf("all jobs were evicted after %v, and their processes ended after %v, all processes of the pod after %v; the pod had gone after %v; its grace period is %d s",
		told.Round(100*time.Millisecond), jobsGone.Round(100*time.Millisecond), processesGone.Round(100*time.Millisecond), time.Since(began).Round(100*time.Millisecond), grace)
	if processesGone > time.Duration(grace)*time.Second {
		t.Errorf("processes of the pod were there longer than its grace period")
	}
}
