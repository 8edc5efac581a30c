//go:build pool

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

const (
	events   = "/api/v1/namespaces/" + harness.Namespace + "/events"
	byEvents = "ValidatingAdmissionPolicy 'podstarter-events'"
)

// eventsRole gives the pilot verbs on events.
func eventsRole(verbs string) string {
	return `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: e2e-events, namespace: ` + harness.Namespace + `}
rules:
  - apiGroups: ["", "events.k8s.io"]
    resources: [events]
    verbs: [` + verbs + `]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: e2e-events, namespace: ` + harness.Namespace + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: e2e-events}
subjects:
  - {kind: ServiceAccount, name: glidein}
`
}

// grant gives the pilot verbs on events until the test ends, and waits until the API server
// knows.
func grant(t *testing.T, pilot *harness.TokenClient, verbs string) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := pool.Kubectl(background(t), strings.NewReader(eventsRole(verbs)), "delete", "--ignore-not-found", "-f", "-"); err != nil {
			t.Error(err)
		}
		awaitEventRight(t, pilot, false)
	})
	if _, err := pool.Kubectl(t.Context(), strings.NewReader(eventsRole(verbs)), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	awaitEventRight(t, pilot, true)
}

// awaitEventRight waits until RBAC lets the pilot create events, or does not.
func awaitEventRight(t *testing.T, pilot *harness.TokenClient, want bool) {
	t.Helper()
	ctx := background(t)
	err := harness.Poll(ctx, fmt.Sprintf("the right to create events: %v", want), func() (bool, error) {
		_, message, err := pilot.Ask(ctx, http.MethodPost, events+"?dryRun=All", asJSON, "{}")
		return strings.Contains(message, byRBAC) != want, err
	})
	if err != nil {
		t.Error(err)
	}
}

func pilotClient(t *testing.T) *harness.TokenClient {
	t.Helper()
	token, err := pool.PilotToken(t.Context(), side)
	if err != nil {
		t.Fatal(err)
	}
	pilot, err := pool.WithToken(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return pilot
}

// TestEventsComponent: the component adds one right, and nothing to the old one.
func TestEventsComponent(t *testing.T) {
	oursOnly(t)
	rules := theOne(t, site(t, "resources: [../glidein]\ncomponents: [../components/events]\n"), "Role")["rules"]
	want := append(theOne(t, site(t, "resources: [../glidein]\n"), "Role")["rules"].([]any),
		map[string]any{"apiGroups": []any{""}, "resources": []any{"events"}, "verbs": []any{"create"}})
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// podEvent is an event as the API server has it.
type podEvent struct {
	Type, Reason, Message string
	InvolvedObject        struct{ UID string }
	Source                struct{ Component string }
}

// ourEvents are those that pilots made.
func ourEvents(t *testing.T) []podEvent {
	t.Helper()
	out, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", "events", "-o", "json", "--field-selector", "source=podstarter,involvedObject.name="+side.PodName())
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []podEvent }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// refuse has a job fail by its registry, and removes it.
func refuse(t *testing.T) {
	t.Helper()
	j := submit(t, job("facts", "universe = docker", "docker_image = "+registry()+"/toomany/image:1"))[0]
	if _, err := j.WaitEvents(soon(t, patience), "an attempt that fails", failed); err != nil {
		t.Fatal(err)
	}
	jobTool(t, j, "condor_rm")
	if _, err := j.History(soon(t, patience)); err != nil {
		t.Fatal(err)
	}
}

// keeperLog is what the keeper has written to its log.
func keeperLog(t *testing.T) string {
	t.Helper()
	out, err := pool.EP(t.Context(), side, "sh", "-c", `cat "$(condor_config_val LOG)/StarterLog.keep"`)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// awaitKeeper lets the keeper begin anew, with the configuration as it is now.
func awaitKeeper(t *testing.T) {
	t.Helper()
	const begins = "Looking after the pod between jobs"
	before := strings.Count(keeperLog(t), begins)
	reconfigureMaster(t)
	err := harness.Poll(soon(t, patience), "the keeper to begin anew", func() (bool, error) { return strings.Count(keeperLog(t), begins) > before, nil })
	if err != nil {
		t.Fatal(err)
	}
}

// TestEventsNotGranted: a pilot that may make no events tries once, and jobs go on.
func TestEventsNotGranted(t *testing.T) {
	oursOnly(t)
	configure(t, "POD_STARTER_POD_EVENTS = True")
	awaitKeeper(t)
	const said = "No events are made of this pod"
	before, old := strings.Count(keeperLog(t), said), len(ourEvents(t))
	refuse(t)
	err := harness.Poll(soon(t, patience), "the keeper to say so", func() (bool, error) { return strings.Count(keeperLog(t), said) == before+1, nil })
	if err != nil {
		t.Fatal(err)
	}
	refuse(t)
	mustExit(t, submit(t, job("exit=3"))[0], 3)
	if n := strings.Count(keeperLog(t), said); n != before+1 {
		t.Errorf("it was tried %d times", n-before)
	}
	if got := ourEvents(t); len(got) > old {
		t.Errorf("events without a right to make them: %+v", got)
	}
}

// TestEvents: a failure that is the site's becomes an event of the pod, one for several.
func TestEvents(t *testing.T) {
	oursOnly(t)
	grant(t, pilotClient(t), "create")
	configure(t, "POD_STARTER_POD_EVENTS = True")
	awaitKeeper(t)
	old := len(ourEvents(t))
	refuse(t)
	var got []podEvent
	err := harness.Poll(soon(t, patience), "an event of the pod", func() (bool, error) {
		got = ourEvents(t)
		return len(got) > old, nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, keeperLog(t))
	}
	out, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", "pod", side.PodName(), "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	e := got[len(got)-1]
	if e.Type != "Warning" || e.Reason != "JobNotRun" || !strings.Contains(e.Message, "too many requests") || e.InvolvedObject.UID != strings.TrimSpace(out) {
		t.Errorf("%+v", e)
	}
	refuse(t)
	mustExit(t, submit(t, job("exit=3"))[0], 3) // by then the keeper has heard of the job before
	if n := len(ourEvents(t)); n != old+1 {
		t.Errorf("%d events of two failures for one cause", n-old)
	}
}

// TestEventsPolicy: whatever its Role says, a pilot can only make short events of its own pod, in
// its own name.
func TestEventsPolicy(t *testing.T) {
	oursOnly(t)
	pilot := pilotClient(t)
	out, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", "pod", side.PodName(), "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	uid := strings.TrimSpace(out)
	event := func(kind, name, uid, component, message, more string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Event","metadata":{"generateName":"e2e.","namespace":%q},"involvedObject":{"kind":%q,"name":%q,"uid":%q,"namespace":%q},`+
			`"source":{"component":%q},"type":"Normal","reason":"E2E","message":%q%s}`, harness.Namespace, kind, name, uid, harness.Namespace, component, message, more)
	}
	own := side.PodName()
	post := func(name, body, want string) attempt {
		return attempt{name: name, method: http.MethodPost, path: events + "?dryRun=All", contentType: asJSON, body: body, loose: want}
	}
	grant(t, pilot, `"*"`)
	for _, a := range []attempt{
		post("of its own pod", event("Pod", own, uid, "podstarter", "m", ""), allowed),
		post("of another pod", event("Pod", "pool", uid, "podstarter", "m", ""), byEvents),
		post("of another pod of this name", event("Pod", own, "0", "podstarter", "m", ""), byEvents),
		post("of a node", event("Node", own, uid, "podstarter", "m", ""), byEvents),
		post("in the kubelet's name", event("Pod", own, uid, "kubelet", "m", ""), byEvents),
		post("in a scheduler's name", event("Pod", own, uid, "podstarter", "m", `,"reportingComponent":"default-scheduler"`), byEvents),
		post("with another object", event("Pod", own, uid, "podstarter", "m", `,"related":{"kind":"Node","name":"n"}`), byEvents),
		post("long", event("Pod", own, uid, "podstarter", strings.Repeat("m", 1025), ""), byEvents),
		post("with a long reason", event("Pod", own, uid, "podstarter", "m", `,"reason":"`+strings.Repeat("R", 300)+`"`), byEvents),
		post("with a long action", event("Pod", own, uid, "podstarter", "m", `,"action":"`+strings.Repeat("a", 300)+`"`), byEvents),
		post("from a long instance", event("Pod", own, uid, "podstarter", "m", `,"reportingInstance":"`+strings.Repeat("i", 300)+`"`), byEvents),
		post("from a long host", event("Pod", own, uid, "podstarter", "m", `,"source":{"component":"podstarter","host":"`+strings.Repeat("h", 300)+`"}`), byEvents),
		post("of a long part of its pod", event("Pod", own, uid, "podstarter", "m", `,"involvedObject":{"kind":"Pod","name":"`+own+`","uid":"`+uid+`","namespace":"`+harness.Namespace+`","fieldPath":"`+strings.Repeat("f", 300)+`"}`), byEvents),
		post("with annotations", event("Pod", own, uid, "podstarter", "m", `,"metadata":{"generateName":"e2e.","namespace":"`+harness.Namespace+`","annotations":{"a":"`+strings.Repeat("x", 1<<17)+`"}}`), byEvents),
		post("with labels", event("Pod", own, uid, "podstarter", "m", `,"metadata":{"generateName":"e2e.","namespace":"`+harness.Namespace+`","labels":{"a":"x"}}`), byEvents),
		post("with finalizers", event("Pod", own, uid, "podstarter", "m", `,"metadata":{"generateName":"e2e.","namespace":"`+harness.Namespace+`","finalizers":["example.org/x"]}`), byEvents),
		post("as owned by a pod", event("Pod", own, uid, "podstarter", "m", `,"metadata":{"generateName":"e2e.","namespace":"`+harness.Namespace+`","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"`+own+`","uid":"`+uid+`"}]}`), byEvents),
		{name: "of the other group", method: http.MethodPost, path: "/apis/events.k8s.io/v1/namespaces/" + harness.Namespace + "/events?dryRun=All", contentType: asJSON, loose: byEvents,
			body: `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e2e-other"},"eventTime":"2026-01-01T00:00:00.000000Z","regarding":{"kind":"Pod","name":"` + own +
				`","uid":"` + uid + `","namespace":"` + harness.Namespace + `"},"action":"a","reason":"E2E","type":"Normal","reportingController":"podstarter","reportingInstance":"x"}`},
		{name: "deletion of all", method: http.MethodDelete, path: events + "?dryRun=All", loose: byEvents},
	} {
		t.Run(a.name, func(t *testing.T) {
			code, message, err := pilot.Ask(t.Context(), a.method, a.path, a.contentType, a.body)
			switch {
			case err != nil:
				t.Fatal(err)
			case a.loose == allowed && code/100 != 2:
				t.Errorf("denied: %d %s", code, message)
			case a.loose != allowed && (code/100 == 2 || !strings.Contains(message, a.loose)):
				t.Errorf("got %d %.300s, want a denial with the words %q", code, message, a.loose)
			}
		})
	}
}
