//go:build pool

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// inImages is a series of jobs, one after another, in these images;
// all print facts.
func inImages(references ...string) harness.Submission {
	s := job("facts", "universe = docker", "output = out.$(Process)", "docker_image = $(image)")
	s.Queue, s.Count = "queue image from (\n"+strings.Join(references, "\n")+"\n)", len(references)
	return s
}

// layers runs the series and tells in which container each job ran.
func layers(t *testing.T, names ...string) []string {
	t.Helper()
	var found, references []string
	for _, name := range names {
		references = append(references, pool.Image(name))
	}
	for i, job := range submit(t, inImages(references...)) {
		mustExit(t, job, 0)
		seen, err := job.Facts(fmt.Sprintf("out.%d", i))
		if err != nil {
			t.Fatal(err)
		}
		if seen.Layer == "" || seen.Image != names[i] {
			t.Fatalf("job %d asked for %s and ran in %q, in the container %q", i, names[i], seen.Image, seen.Layer)
		}
		found = append(found, seen.Layer)
	}
	return found
}

// TestContainerIsUsedAgain: with POD_STARTER_RESET = image, jobs of one user share
// a container as long as they want the same image.
// TestContainerIsUsedAgainByItsOwnerAlone shows that another user never gets it.
func TestContainerIsUsedAgain(t *testing.T) {
	oursOnly(t)
	// The digest must not expire between two of these jobs.
	configure(t, "POD_STARTER_RESET = image", "POD_STARTER_DIGEST_LIFETIME = 86400")
	before, err := pool.APILog()
	if err != nil {
		t.Fatal(err)
	}
	ran := layers(t, "busybox", "busybox", "busybox", "probe", "busybox")
	if ran[1] != ran[0] || ran[2] != ran[0] {
		t.Errorf("jobs in the same image did not share a container: %q", ran)
	}
	if ran[3] == ran[0] || ran[4] == ran[0] || ran[4] == ran[3] {
		t.Errorf("jobs in different images shared a container: %q", ran)
	}
	calls, err := before.Calls()
	if err != nil {
		t.Fatal(err)
	}
	if n := verbs(calls)["patch"]; n != 3 {
		t.Errorf("%d patches for three containers: %v", n, verbs(calls))
	}
}

func verbs(calls []harness.APICall) map[string]int {
	count := map[string]int{}
	for _, call := range calls {
		count[call.Verb]++
	}
	return count
}

// TestCallsOfAJob: a job costs the API server one patch and at most one watch,
// which has ended when the job runs. Only the first job in an image under a tag
// watches a second or two longer, for its digest.
func TestCallsOfAJob(t *testing.T) {
	oursOnly(t)
	configure(t, "POD_STARTER_DIGEST_LIFETIME = 86400")
	for _, name := range []string{"busybox", "probe"} {
		learnDigest(t, name)
	}
	// The starter does not ask for what an earlier one has written down.
	layers(t, "busybox")
	before, err := pool.APILog()
	if err != nil {
		t.Fatal(err)
	}
	images := []string{"busybox", "busybox", "probe", "busybox", "probe"}
	layers(t, images...)
	s := job("ready forever", "universe = docker", "docker_image = "+pool.Image("busybox"))
	last := submit(t, s)[0]
	process := ready(t)
	began := time.Now()
	// Longer than any late effect of a binding: the kubelet looks every second.
	<-time.After(3 * time.Second)
	ended := time.Now()
	if err := harness.Kill(process, 9); err != nil {
		t.Fatal(err)
	}
	if end := ending(t, last); end.Exited {
		t.Errorf("job %s: %s, want the end by a signal", last.ID(), end)
	}
	if _, err := last.Run(soon(t, patience), 1); err != nil {
		t.Fatal(err)
	}
	calls, err := before.Calls()
	if err != nil {
		t.Fatal(err)
	}
	count, jobs := verbs(calls), len(images)+1
	if count["patch"] != jobs || count["watch"] > jobs || len(calls) != count["patch"]+count["watch"] {
		t.Errorf("%d jobs made the calls %v; want one patch each and at most one watch", jobs, count)
	}
	for _, call := range calls {
		if call.Code != http.StatusOK {
			t.Errorf("%s was answered with %d", call.Verb, call.Code)
		}
		if call.Began.Before(ended) && (call.Ended.IsZero() || call.Ended.After(began)) {
			t.Errorf("%s from %s to %s, while the job ran from %s to %s", call.Verb, call.Began, call.Ended, began, ended)
		}
	}
}

// learnDigest runs a job in an image for long enough that its digest is known,
// unless it is known already.
func learnDigest(t *testing.T, name string) {
	t.Helper()
	isKnown := func() bool {
		text, err := pool.EP(t.Context(), side, "cat", digestFile)
		return err == nil && strings.Contains(text, `"`+pool.Image(name)+`"`)
	}
	for range 3 {
		if isKnown() {
			return
		}
		mustExit(t, submit(t, job("sleep=2s", "universe = docker", "docker_image = "+pool.Image(name)))[0], 0)
	}
	if !isKnown() {
		t.Fatalf("three jobs in %s did not teach its digest", name)
	}
}

// What k8sexec remembers, in POD_STARTER_PRIVATE_DIR.
const (
	digestFile = "/run/podstarter/private/digests.json"
	slotFile   = "/run/podstarter/private/slot.payload.json"
)

// noBothPolicy refuses image references that have a tag and a digest.
const noBothPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: e2e-no-tag-and-digest}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods]}
  validations:
    - expression: "object.spec.containers.all(c, !c.image.matches('^.*:[^/@]+@sha256:[0-9a-f]+$')) &&
        object.spec.?initContainers.orValue([]).all(c, !c.image.matches('^.*:[^/@]+@sha256:[0-9a-f]+$'))"
      message: "an image is named by its tag or by its digest, not by both"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: e2e-no-tag-and-digest}
spec: {policyName: e2e-no-tag-and-digest, validationActions: [Deny]}
`

// TestPolicyAgainstTagAndDigest: a cluster whose policy refuses our throw-away tags
// still runs the job, under the reference that the user wrote. It is asked only
// once whether it refuses them.
func TestPolicyAgainstTagAndDigest(t *testing.T) {
	oursOnly(t)
	if _, err := pool.Kubectl(t.Context(), strings.NewReader(noBothPolicy), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.Kubectl(background(t), strings.NewReader(noBothPolicy), "delete", "--ignore-not-found", "-f", "-"); err != nil {
			t.Error(err)
		}
		// What was learned about this cluster is no longer true.
		if _, err := pool.EP(background(t), side, "rm", "-f", slotFile); err != nil {
			t.Error(err)
		}
	})
	both := fmt.Sprintf(`{"spec":{%q:[{"name":"payload","image":"a/b:c@sha256:%s"}]}}`, pool.PayloadList(), strings.Repeat("a", 64))
	err := harness.Poll(soon(t, patience), "the policy to be in force", func() (bool, error) {
		_, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "patch", "pod", side.PodName(), "--dry-run=server", "-p", both)
		return err != nil && strings.Contains(err.Error(), "not by both"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before, err := pool.APILog()
	if err != nil {
		t.Fatal(err)
	}
	// Named by digest: the kubelet can have seen these references only in this
	// test, and is unlikely to make them wait for a back-off.
	images := []string{byDigest(t, "busybox"), byDigest(t, "probe")}
	for _, job := range submit(t, inImages(images...)) {
		mustExit(t, job, 0)
	}
	calls, err := before.Calls()
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, call := range calls {
		if call.Verb == "patch" && call.Code != http.StatusOK {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d patches were refused, want one, since it is remembered: %+v", refused, calls)
	}
	has, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", "pod", side.PodName(), "-o", "jsonpath={.spec."+pool.PayloadList()+"[?(@.name=='payload')].image}")
	if err != nil {
		t.Fatal(err)
	}
	if want := images[len(images)-1]; has != want {
		t.Errorf("the pod has the image %s, want %s", has, want)
	}
}

// byDigest is an image of the pool by its digest only.
func byDigest(t *testing.T, name string) string {
	t.Helper()
	repository, tag := pool.Image(name), ""
	if i := strings.LastIndex(repository, ":"); i > strings.LastIndex(repository, "/") {
		repository, tag = repository[:i], repository[i+1:]
	}
	_, path, _ := strings.Cut(repository, "/")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, "http://"+registry()+"/v2/"+path+"/manifests/"+tag, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	digest := answer.Header.Get("Docker-Content-Digest")
	if digest == "" {
		t.Fatalf("the registry names no digest of %s: %s", pool.Image(name), answer.Status)
	}
	return repository + "@" + digest
}
