//go:build pool

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/verdict"
)

// Who says no to a pilot.
const (
	allowed  = ""
	byRBAC   = "cannot "
	byPolicy = "ValidatingAdmissionPolicy 'podstarter-pilot'"
	byImages = "ValidatingAdmissionPolicy 'podstarter-images'"
)

// attempt is something that a pilot may try with its token. Nothing changes: all
// are dry runs, except one that cannot be and is refused.
type attempt struct {
	name         string
	method, path string
	contentType  string
	body         string
	// Who stops it with the Role of deploy/glidein, and with a Role that allows
	// everything. RBAC is asked first.
	tight, loose string
}

const (
	merge  = "application/strategic-merge-patch+json"
	jsonOp = "application/json-patch+json"
	asJSON = "application/json"
)

// attempts are made with the token of the pilot in pod own, which has the payload
// containers in that list of its spec; other is another pod.
func attempts(own, other, refused, list string, payloads []string) []attempt {
	const pods = "/api/v1/namespaces/" + harness.Namespace + "/pods"
	const newPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"intruder"},"spec":{"containers":[{"name":"c","image":"x"}]}}`
	patch := func(name, pod, body, tight, loose string) attempt {
		return attempt{name, http.MethodPatch, pods + "/" + pod + "?dryRun=All", merge, body, tight, loose}
	}
	in := func(list, container, image string) string {
		return fmt.Sprintf(`{"spec":{%q:[{"name":%q,"image":%q}]}}`, list, container, image)
	}
	image := func(image string) string { return in(list, "payload", image) }
	var all []named
	for _, name := range payloads {
		all = append(all, named{name, "registry.example.org/any:1"})
	}
	oneRefused := slices.Clone(all)
	oneRefused[len(all)-1].Image = refused
	pilot := []named{{"pilot", "registry.example.org/evil:1"}}
	return []attempt{
		patch("payload image", own, image("registry.example.org/any:1"), allowed, allowed),
		patch("payload image and nonce", own, `{"metadata":{"annotations":{"podstarter/nonce-payload":"n"}},"spec":{"`+list+`":[{"name":"payload","image":"a/b@sha256:`+
			strings.Repeat("a", 64)+`"}]}}`, allowed, allowed),
		patch("end of the pod", own, `{"spec":{"activeDeadlineSeconds":1}}`, allowed, allowed),
		patch("nothing", own, `{}`, allowed, allowed),
		// Expressions have a budget; one that exceeds it is a denial.
		patch("nearly as many annotations as a pod may have", own, manyAnnotations(), allowed, allowed),
		patch("image that the site refuses", own, image(refused), byImages, byImages),
		patch("two images, one refused", own, fmt.Sprintf(`{"spec":{%q:[{"name":"payload","image":%q}],"activeDeadlineSeconds":9}}`, list, refused), byImages, byImages),
		// Several containers are made anew at once.
		patch("images and nonces of all payload containers", own, several(list, all, nil), allowed, allowed),
		patch("images of all payload containers, one refused", own, several(list, oneRefused, nil), byImages, byImages),
		patch("images of all payload containers and the pilot's", own, several(list, all, pilot), byPolicy, byPolicy),
		patch("pilot image", own, in("containers", "pilot", "registry.example.org/evil:1"), byPolicy, byPolicy),
		patch("init container's image", own, `{"spec":{"initContainers":[{"name":"prepare","image":"registry.example.org/evil:1"}]}}`, byPolicy, byPolicy),
		patch("label", own, `{"metadata":{"labels":{"app.kubernetes.io/name":"service-of-another"}}}`, byPolicy, byPolicy),
		patch("removal of labels", own, `{"metadata":{"labels":null}}`, byPolicy, byPolicy),
		patch("annotation of another", own, `{"metadata":{"annotations":{"kubernetes.io/egress-bandwidth":"1T"}}}`, byPolicy, byPolicy),
		patch("removal of annotations", own, `{"metadata":{"annotations":null}}`, byPolicy, byPolicy),
		patch("annotation with a name like ours", own, `{"metadata":{"annotations":{"podstarter.evil.example/x":"1"}}}`, byPolicy, byPolicy),
		patch("finalizer", own, `{"metadata":{"finalizers":["example.org/never"]}}`, byPolicy, byPolicy),
		patch("owner", own, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"y"}]}}`, byPolicy, byPolicy),
		{"toleration", http.MethodPatch, pods + "/" + own + "?dryRun=All", jsonOp, `[{"op":"add","path":"/spec/tolerations/-","value":{"key":"k","operator":"Exists"}}]`, byPolicy, byPolicy},
		// The API server itself: its validation comes before the policies.
		patch("grace period", own, `{"spec":{"terminationGracePeriodSeconds":1}}`, "Forbidden: pod updates may not", "Forbidden: pod updates may not"),
		patch("command", own, `{"spec":{"`+list+`":[{"name":"payload","command":["sh"]}]}}`, "Forbidden: pod updates may not", "Forbidden: pod updates may not"),
		patch("privilege", own, `{"spec":{"`+list+`":[{"name":"payload","securityContext":{"privileged":true}}]}}`, "Forbidden: pod updates may not", "Forbidden: pod updates may not"),

		patch("another pod's image", other, in("containers", "pilot", "registry.example.org/any:1"), byRBAC, byPolicy),
		patch("another pod's annotation", other, `{"metadata":{"annotations":{"podstarter/nonce-payload":"n"}}}`, byRBAC, byPolicy),
		patch("another pod's end", other, `{"spec":{"activeDeadlineSeconds":1}}`, byRBAC, byPolicy),
		patch("status", own+"/status", `{"status":{"phase":"Succeeded"}}`, byRBAC, byPolicy),
		patch("resize", own+"/resize", `{}`, byRBAC, byPolicy),
		patch("ephemeral container", own+"/ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"e","image":"x"}]}}`, byRBAC, byPolicy),
		{"eviction", http.MethodPost, pods + "/" + own + "/eviction?dryRun=All", asJSON, `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"` + own + `"}}`, byRBAC, byPolicy},
		{"exec", http.MethodPost, pods + "/" + own + "/exec?command=true&container=payload&stdout=true", "", "", byRBAC, byPolicy},
		{"exec elsewhere", http.MethodPost, pods + "/" + other + "/exec?command=true&stdout=true", "", "", byRBAC, byPolicy},
		{"deletion", http.MethodDelete, pods + "/" + own + "?dryRun=All", "", "", byRBAC, byPolicy},
		{"deletion of another", http.MethodDelete, pods + "/" + other + "?dryRun=All", "", "", byRBAC, byPolicy},
		{"deletion of all", http.MethodDelete, pods + "?dryRun=All", "", "", byRBAC, byPolicy},
		{"creation", http.MethodPost, pods + "?dryRun=All", asJSON, newPod, byRBAC, byPolicy},

		// Reading: no policy can restrict that.
		{"own pod", http.MethodGet, pods + "/" + own, "", "", allowed, allowed},
		{"own pod by name in a list", http.MethodGet, pods + "?limit=1&fieldSelector=metadata.name%3D" + own, "", "", byRBAC, allowed},
		{"another pod", http.MethodGet, pods + "/" + other, "", "", byRBAC, allowed},
		{"list", http.MethodGet, pods + "?limit=1", "", "", byRBAC, allowed},
		{"log", http.MethodGet, pods + "/" + own + "/log?container=payload&limitBytes=1", "", "", byRBAC, allowed},

		// What neither Role allows.
		{"pods of another namespace", http.MethodGet, "/api/v1/namespaces/default/pods", "", "", byRBAC, byRBAC},
		{"pods of all namespaces", http.MethodGet, "/api/v1/pods?limit=1", "", "", byRBAC, byRBAC},
		{"creation in another namespace", http.MethodPost, "/api/v1/namespaces/default/pods?dryRun=All", asJSON, newPod, byRBAC, byRBAC},
		{"secrets", http.MethodGet, "/api/v1/namespaces/" + harness.Namespace + "/secrets", "", "", byRBAC, byRBAC},
		{"its own credentials", http.MethodGet, "/api/v1/namespaces/" + harness.Namespace + "/secrets/glidein-credentials", "", "", byRBAC, byRBAC},
		{"config maps", http.MethodGet, "/api/v1/namespaces/" + harness.Namespace + "/configmaps", "", "", byRBAC, byRBAC},
		{"nodes", http.MethodGet, "/api/v1/nodes", "", "", byRBAC, byRBAC},
		{"a token without a pod", http.MethodPost, "/api/v1/namespaces/" + harness.Namespace + "/serviceaccounts/glidein/token?dryRun=All", asJSON,
			`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`, byRBAC, byRBAC},
		{"the policy's binding", http.MethodDelete, "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/podstarter-pilot?dryRun=All", "", "", byRBAC, byRBAC},
		{"its own role", http.MethodPatch, "/apis/rbac.authorization.k8s.io/v1/namespaces/" + harness.Namespace + "/roles/glidein?dryRun=All", asMerge,
			`{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`, byRBAC, byRBAC},
	}
}

// named is a container with an image.
type named struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// several is one patch that gives payload containers, which are in that list, and others
// before them, other images and nonces. They must be in the
// order of the pod: a strategic merge patch puts what it names into its own order
// (apimachinery pkg/util/strategicpatch/patch.go:normalizeElementOrder), which no update
// of a pod may change.
func several(list string, payloads, others []named) string {
	nonces := map[string]string{}
	for _, c := range slices.Concat(others, payloads) {
		nonces[podapi.NonceAnnotation+c.Name] = "n"
	}
	spec := map[string][]named{list: payloads}
	if len(others) > 0 {
		spec["containers"] = slices.Concat(others, spec["containers"])
	}
	text, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": nonces}, "spec": spec})
	return string(text)
}

// manyAnnotations are 216 KiB of the 256 that annotations may have in all
// (apimachinery pkg/api/validation/objectmeta.go:TotalAnnotationSizeLimitB).
func manyAnnotations() string {
	var b strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&b, `,"podstarter/e2e-%05d":"0123456789"`, i)
	}
	return `{"metadata":{"annotations":{` + b.String()[1:] + `}}}`
}

const asMerge = "application/merge-patch+json"

// looseRole allows everything to do with pods.
const looseRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: e2e-loose, namespace: ` + harness.Namespace + `}
rules:
  - apiGroups: [""]
    resources: [pods, pods/status, pods/resize, pods/ephemeralcontainers, pods/eviction, pods/exec, pods/log]
    verbs: ["*"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: e2e-loose, namespace: ` + harness.Namespace + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: e2e-loose}
subjects:
  - {kind: ServiceAccount, name: glidein}
  - {kind: ServiceAccount, name: e2e-unknown}
---
# An account that the policies do not know as a pilot's.
apiVersion: v1
kind: ServiceAccount
metadata: {name: e2e-unknown, namespace: ` + harness.Namespace + `}
`

// TestPilotToken: what the token in the pilot container allows, first with the Role
// of deploy/glidein, then with one that allows everything to do with pods, when
// only the policy of deploy/policy is left.
func TestPilotToken(t *testing.T) {
	oursOnly(t)
	token, err := pool.PilotToken(t.Context(), side)
	if err != nil {
		t.Fatal(err)
	}
	pilot, err := pool.WithToken(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	payloads, err := pool.Containers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := attempts(side.PodName(), harness.Stock.PodName(), refusedImage(), pool.PayloadList(), payloads)
	try := func(t *testing.T, a attempt, want string) {
		t.Helper()
		code, message, err := pilot.Ask(t.Context(), a.method, a.path, a.contentType, a.body)
		switch {
		case err != nil:
			t.Fatal(err)
		case want == allowed && code/100 != 2:
			t.Errorf("denied: %d %s", code, message)
		case want != allowed && (code != http.StatusForbidden && code != http.StatusUnprocessableEntity || !strings.Contains(message, want)):
			t.Errorf("got %d %.300s, want a denial with the words %q", code, message, want)
		}
	}
	for _, a := range all {
		t.Run("tight/"+a.name, func(t *testing.T) { try(t, a, a.tight) })
	}
	loosen(t, pilot)
	for _, a := range all {
		t.Run("loose/"+a.name, func(t *testing.T) { try(t, a, a.loose) })
	}
	// A token of the same account without a pod has no rights.
	out, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "create", "token", "glidein", "--duration=10m")
	if err != nil {
		t.Fatal(err)
	}
	if pilot, err = pool.WithToken(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	t.Run("without a pod", func(t *testing.T) {
		try(t, all[0], "this token is bound to no pod")
	})
}

// refusedImage is one that the pool's policy refuses (integration/pool).
func refusedImage() string { return registry() + "/not-on-this-cluster/image:1" }

// loosen gives the pilot all rights to pods for the rest of the test, and waits
// until they are in force.
func loosen(t *testing.T, pilot *harness.TokenClient) {
	t.Helper()
	t.Cleanup(func() {
		ctx := background(t)
		if _, err := pool.Kubectl(ctx, strings.NewReader(looseRole), "delete", "--ignore-not-found", "-f", "-"); err != nil {
			t.Error(err)
		}
		waitRight(t, pilot, http.StatusForbidden)
	})
	if _, err := pool.Kubectl(t.Context(), strings.NewReader(looseRole), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	waitRight(t, pilot, http.StatusOK)
}

// waitRight waits until a list of pods is answered so: the API server learns of
// roles in the background.
func waitRight(t *testing.T, pilot *harness.TokenClient, want int) {
	t.Helper()
	ctx := background(t)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		code, message, err := pilot.Ask(ctx, http.MethodGet, "/api/v1/namespaces/"+harness.Namespace+"/pods?limit=1", "", "")
		if err == nil && code == want {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the API server still answers %d %s (%v)", code, message, err)
		}
	}
}

// TestImageThatThePolicyRefuses: a job whose image the site does not allow is held,
// and its user is told what is allowed.
func TestImageThatThePolicyRefuses(t *testing.T) {
	oursOnly(t)
	end := ending(t, submit(t, job("facts", "universe = docker", "docker_image = "+refusedImage()))[0])
	if !end.Held || end.Code != holdInvalidDockerImage || end.Subcode != verdict.SubcodePolicy {
		t.Errorf("%s; want held with code %d, subcode %d", end, holdInvalidDockerImage, verdict.SubcodePolicy)
	}
	for _, word := range []string{refusedImage(), "policy of the cluster", "refused are images that begin with"} {
		if !strings.Contains(end.Reason, word) {
			t.Errorf("the reason %q does not contain %q", end.Reason, word)
		}
	}
	t.Log(end.Reason)
	mustExit(t, submit(t, job("exit=4"))[0], 4)
}
