package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/guest"
	"podstarter/integration/pool/internal/statedir"
	"podstarter/integration/pool/internal/web"
)

func testPool(slots int) *pool {
	return &pool{
		dir: statedir.Dir{Root: "/state", Module: "/module"},
		settings: statedir.Settings{
			Slots: slots, Mode: modeShared, Ports: map[string]int{poolPod: 1, glideinPod: 2, stockPod: 3, registryVerb: 4, web.HTTP: 5},
		},
		images: map[string]string{"condor": "r/condor:1", "pilot": "r/pilot:1", "debian": "r/debian:1"},
	}
}

// glidein is deploy/glidein as far as the plans look at it.
func glidein() []cluster.Object {
	type m = map[string]any
	return []cluster.Object{
		{"kind": "ServiceAccount", "metadata": m{"name": "glidein"}},
		{"kind": "Role", "metadata": m{"name": "glidein"}},
		{"kind": "ConfigMap", "metadata": m{"name": "glidein-config-abc"}, "data": m{"60-glidein.conf": "X = 1\n"}},
		{"kind": "Pod", "metadata": m{"name": "glidein"}, "spec": m{
			"initContainers": []any{m{"name": "prepare", "volumeMounts": []any{m{"name": "execute"}, m{"name": "podstarter-bin"}}}},
			"containers": []any{
				m{"name": "pilot", "image": "pilot"},
				m{"name": "payload", "image": "x", "args": []any{"-control", "/run/podstarter/control/payload"}, "env": []any{
					m{"name": "POD_STARTER_NONCE", "valueFrom": m{"fieldRef": m{"fieldPath": "metadata.annotations['podstarter/nonce-payload']"}}},
				}},
			},
			"volumes": []any{m{"name": "log", "emptyDir": m{}}, m{"name": "config", "configMap": m{"name": "glidein-config-abc"}}},
		}},
	}
}

func TestGlideinPlan(t *testing.T) {
	p := testPool(2)
	pod, others, err := p.edited(glidein(), p.glideinPlan(0))
	if err != nil {
		t.Fatal(err)
	}
	spec := child(pod, "spec")
	images := map[string]any{}
	for _, c := range containers(spec) {
		images[c["name"].(string)] = c["image"]
	}
	want := map[string]any{"prepare": "r/pilot:1", "pilot": "r/pilot:1", "payload": "r/debian:1", "payload-2": "r/debian:1"}
	if diff := cmp.Diff(want, images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	pilot, _ := json.Marshal(list(spec, "containers")[0])
	for _, part := range []string{`{"name":"http_proxy","value":"http://127.0.0.1:5"}`, `{"name":"X509_CERT_DIR","value":"/etc/podstarter/certificates"}`, `"mountPath":"/etc/podstarter/certificates"`} {
		if !strings.Contains(string(pilot), part) {
			t.Errorf("no %s in the pilot: %s", part, pilot)
		}
	}
	second := list(spec, "containers")[2]
	if got := second["args"].([]any)[1]; got != "/run/podstarter/control/payload-2" {
		t.Errorf("the second payload container's control directory is %v", got)
	}
	if got := cluster.Object(list(second, "env")[0]).String("valueFrom", "fieldRef", "fieldPath"); got != "metadata.annotations['podstarter/nonce-payload-2']" {
		t.Errorf("its nonce is %v", got)
	}
	if spec["nodeName"] != "node" || spec["hostNetwork"] != true {
		t.Errorf("the pod is not bound to the node and its network: %v", spec)
	}
	if len(others) != 3 {
		t.Errorf("%d other objects", len(others))
	}
	config := others[2].String("data", "90-test.conf")
	for _, line := range []string{"COLLECTOR_HOST = 127.0.0.1:1", "SHARED_PORT_PORT = 2", "NUM_SLOTS = 2", "SLOT2_USER = slot2", "POD_STARTER_CONTAINERS = payload, payload-2"} {
		if !strings.Contains(config, line+"\n") {
			t.Errorf("no %q in\n%s", line, config)
		}
	}
}

func TestStockPlan(t *testing.T) {
	p := testPool(1)
	pod, others, err := p.edited(glidein(), p.stockPlan(0))
	if err != nil {
		t.Fatal(err)
	}
	spec := child(pod, "spec")
	var names []any
	for _, c := range containers(spec) {
		names = append(names, c["name"])
	}
	if diff := cmp.Diff([]any{"prepare", "pilot"}, names); diff != "" {
		t.Error(diff)
	}
	if mounts := list(list(spec, "initContainers")[0], "volumeMounts"); len(mounts) != 1 {
		t.Errorf("the stock execution point mounts %v", mounts)
	}
	var kinds []string
	for _, o := range others {
		kinds = append(kinds, o.String("kind")+"/"+o.String("metadata", "name"))
	}
	if diff := cmp.Diff([]string{"ServiceAccount/glidein", "ConfigMap/stock-config"}, kinds); diff != "" {
		t.Error(diff)
	}
	if got := cluster.Object(list(spec, "volumes")[1]).String("configMap", "name"); got != "stock-config" {
		t.Errorf("it reads the configuration %s", got)
	}
}

// knob is the last value of a knob in a configuration.
func knob(config, name string) string {
	value := ""
	for line := range strings.Lines(config) {
		if found, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " = "); ok && found == name {
			value = text
		}
	}
	return value
}

// TestSpares: spares are further payload containers of our pod; slots, and what the stock execution point has, stay as they are.
func TestSpares(t *testing.T) {
	names := []string{"NUM_CPUS", "NUM_SLOTS", "NUM_SLOTS_TYPE_1", "POD_STARTER_CONTAINERS", "POD_STARTER_SPARES", "SLOT2_USER", "SLOT3_USER"}
	for _, partitionable := range []bool{false, true} {
		p := testPool(2)
		p.settings.Partitionable = partitionable
		without := map[string]string{}
		for _, name := range names {
			without[name] = knob(p.glideinPlan(0).config, name)
		}
		stock := p.stockPlan(0).config
		p.settings.Spares = 2
		pod, others, err := p.edited(glidein(), p.glideinPlan(0))
		if err != nil {
			t.Fatal(err)
		}
		var payloads []string
		for _, c := range list(child(pod, "spec"), "containers") {
			if name, _ := c["name"].(string); isPayload(name) {
				payloads = append(payloads, name)
			}
		}
		if diff := cmp.Diff([]string{"payload", "payload-2", "payload-3", "payload-4"}, payloads); diff != "" {
			t.Errorf("payload containers (-want +got):\n%s", diff)
		}
		config := others[2].String("data", "90-test.conf")
		got := map[string]string{}
		for _, name := range names {
			got[name] = knob(config, name)
		}
		want := maps.Clone(without)
		want["POD_STARTER_CONTAINERS"], want["POD_STARTER_SPARES"] = "payload, payload-2, payload-3, payload-4", "2"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("partitionable %v (-want +got):\n%s", partitionable, diff)
		}
		if diff := cmp.Diff(stock, p.stockPlan(0).config); diff != "" {
			t.Errorf("the stock execution point's (-without +with spares):\n%s", diff)
		}
	}
}

// TestUsersOfSlots: the pilot image has a user for each slot, and for each payload container: the ids of both begin with the same.
func TestUsersOfSlots(t *testing.T) {
	users := ""
	for _, line := range condorRoots["25.14"].Customize {
		if strings.Contains(line, "useradd") && strings.Contains(line, "slot$i") {
			users = line
		}
	}
	if !strings.Contains(users, "seq "+strconv.Itoa(maxSlots+maxSpares)+")") || !strings.Contains(users, "--uid $(("+strconv.Itoa(payloadUID-1)+"+i))") {
		t.Errorf("users are made by %q", users)
	}
	text, err := os.ReadFile("../../condor_config.d/50-podstarter.conf")
	if err != nil {
		t.Fatal(err)
	}
	if got := knob(string(text), "POD_STARTER_PAYLOAD_UID"); got != strconv.Itoa(payloadUID) {
		t.Errorf("payloads of the first container are user %s, and slot1 is user %d", got, payloadUID)
	}
	// Nobody else has one of these ids: not the user who submits, nor any that Debian gives out (adduser.conf).
	if submitUID >= payloadUID || payloadUID+maxSlots+maxSpares > 65534 {
		t.Errorf("user %d submits jobs, and users from %d on run them", submitUID, payloadUID)
	}
}

// TestPartitionableSlots: each startd has one slot, from which it cuts as many as there are payload containers. The stock
// starter runs the jobs in these as the users of fixed slots, of which the startd may number some beyond those at once.
func TestPartitionableSlots(t *testing.T) {
	p := testPool(2)
	p.settings.Partitionable = true
	for _, tc := range []struct {
		config string
		cpus   int
	}{{p.glideinPlan(0).config, 8}, {p.stockPlan(0).config, 2}} {
		got := map[string]string{}
		for _, name := range []string{"NUM_CPUS", "NUM_SLOTS", "SLOT_TYPE_1", "SLOT_TYPE_1_PARTITIONABLE", "SLOT1_1_USER", "SLOT1_33_USER"} {
			got[name] = knob(tc.config, name)
		}
		want := map[string]string{"NUM_CPUS": strconv.Itoa(tc.cpus), "NUM_SLOTS": "1", "SLOT_TYPE_1": "100%", "SLOT_TYPE_1_PARTITIONABLE": "True",
			"SLOT1_1_USER": "slot1", "SLOT1_33_USER": "slot33"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d CPUs:\n%s", tc.cpus, diff)
		}
	}
}

// TestSecondNode: an execution point of another node is bound to it, reaches the first one by its address, and shares no
// name with the first one's.
func TestSecondNode(t *testing.T) {
	p := testPool(1)
	p.settings.Address, p.settings.Nodes = "198.18.0.2", 2
	p.settings.Ports[cluster.APIServer], p.settings.Ports["glidein-2"] = 6, 7
	pod, others, err := p.edited(glidein(), p.glideinPlan(1))
	if err != nil {
		t.Fatal(err)
	}
	spec := child(pod, "spec")
	if pod.String("metadata", "name") != "glidein-2" || spec["nodeName"] != "node-2" {
		t.Errorf("%s on %v", pod.String("metadata", "name"), spec["nodeName"])
	}
	names := []string{cluster.Object(list(spec, "volumes")[1]).String("configMap", "name")}
	for _, o := range others {
		names = append(names, o.String("kind")+"/"+o.String("metadata", "name"))
	}
	if diff := cmp.Diff([]string{"glidein-2-config", "ServiceAccount/glidein", "Role/glidein-2", "ConfigMap/glidein-2-config"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	pilot, _ := json.Marshal(list(spec, "containers")[0])
	for _, part := range []string{`{"name":"KUBERNETES_SERVICE_HOST","value":"198.18.0.2"}`, `{"name":"KUBERNETES_SERVICE_PORT","value":"6"}`} {
		if !strings.Contains(string(pilot), part) {
			t.Errorf("no %s in the pilot: %s", part, pilot)
		}
	}
	config := others[2].String("data", "90-test.conf")
	for _, line := range []string{"COLLECTOR_HOST = 198.18.0.2:1", "SHARED_PORT_PORT = 7", "NETWORK_INTERFACE = 198.18.0.3"} {
		if !strings.Contains(config, line+"\n") {
			t.Errorf("no %q in\n%s", line, config)
		}
	}
}

// TestExecutionPoints: those of nodes that the cluster no longer has go, and so do stock ones that nobody wants.
func TestExecutionPoints(t *testing.T) {
	p := testPool(1)
	p.settings.Nodes, p.settings.Stock = 2, true
	for _, tc := range []struct {
		stock        bool
		wanted, gone []string
	}{
		{true, []string{"glidein", "glidein-stock", "glidein-2", "glidein-stock-2"}, []string{"glidein-3", "glidein-stock-3", "glidein-4", "glidein-stock-4", "glidein-docker", "glidein-apptainer"}},
		{false, []string{"glidein", "glidein-2"}, []string{"glidein-stock", "glidein-stock-2", "glidein-3", "glidein-stock-3", "glidein-4", "glidein-stock-4", "glidein-docker", "glidein-apptainer"}},
	} {
		p.settings.Stock = tc.stock
		plans, gone := p.executionPoints()
		var wanted []string
		for _, plan := range plans {
			wanted = append(wanted, plan.pod)
			if got := nodeOf(plan.pod); got != plan.node {
				t.Errorf("%s is on the node %d, not %d", plan.pod, plan.node, got)
			}
		}
		if diff := cmp.Diff([][]string{tc.wanted, tc.gone}, [][]string{wanted, gone}); diff != "" {
			t.Errorf("stock %v (-want +got):\n%s", tc.stock, diff)
		}
	}
}

func TestSlotOf(t *testing.T) {
	for name, want := range map[string]bool{"slot1@glidein": true, "slot1_2@glidein@guest": true, "slot1@glidein-2": false, "glidein": false, "slot1@my-glidein": false} {
		if got := (slot{name: name}).of("glidein"); got != want {
			t.Errorf("%s is of glidein: %v", name, got)
		}
	}
}

func TestFingerprintSeesConfiguration(t *testing.T) {
	of := func(slots int) string {
		t.Helper()
		p := testPool(slots)
		pod, others, err := p.edited(glidein(), p.glideinPlan(0))
		if err != nil {
			t.Fatal(err)
		}
		key, err := fingerprint(append(others, pod))
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	if first, again := of(1), of(1); first != again {
		t.Error("the same plan has two fingerprints")
	}
	if of(1) == of(2) {
		t.Error("another number of slots does not show")
	}
}

func TestParseSlots(t *testing.T) {
	got := parseSlots("slot1@a\tUnclaimed\ttrue\ttrue\nslot1@b\tOwner\tundefined\ttrue\nslot1@c\tUnclaimed\tundefined\tfalse\n\njunk\n")
	want := []slot{{"slot1@a", "Unclaimed", true, true}, {"slot1@b", "Owner", false, true}, {"slot1@c", "Unclaimed", false, false}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(slot{})); diff != "" {
		t.Error(diff)
	}
	if !got[0].usable() || got[1].usable() || got[2].usable() {
		t.Error("usable is wrong")
	}
}

func TestPodRuns(t *testing.T) {
	type m = map[string]any
	pod := cluster.Object{
		"spec": m{"containers": []any{m{"name": "pilot"}, m{"name": "payload"}}},
		"status": m{"containerStatuses": []any{
			m{"name": "pilot", "state": m{"running": m{}}},
			m{"name": "payload", "state": m{"waiting": m{"reason": "ErrImagePull", "message": "no"}}},
		}},
	}
	if ok, err := podRuns(pod, func(name string) bool { return !isPayload(name) }); !ok || err != nil {
		t.Errorf("without the payload: %v, %v", ok, err)
	}
	ok, err := podRuns(pod, func(string) bool { return true })
	if ok || err == nil || !strings.Contains(err.Error(), "ErrImagePull") {
		t.Errorf("with the payload: %v, %v", ok, err)
	}
}

func TestRefuse(t *testing.T) {
	type m = map[string]any
	objects := []cluster.Object{
		{"kind": "ValidatingAdmissionPolicyBinding", "spec": m{"policyName": "x"}},
		{"kind": "ValidatingAdmissionPolicy", "spec": m{"variables": []any{
			m{"name": "allowed", "expression": "['']"}, m{"name": "refused", "expression": "[]"},
		}}},
	}
	if !refuse(objects, "r/no/") {
		t.Fatal("the variable is not found")
	}
	got := list(child(objects[1], "spec"), "variables")
	want := []m{{"name": "allowed", "expression": "['']"}, {"name": "refused", "expression": "['r/no/']"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if refuse(objects[:1], "r/no/") {
		t.Error("it claims to have found a file that does not exist")
	}
}

// TestFailure: only a machine that cannot run guests has its own exit code.
func TestFailure(t *testing.T) {
	for _, tc := range []struct {
		name string
		code int
		err  error
		want int
	}{
		{"unable", 0, fmt.Errorf("up: %w: why", guest.ErrUnable), 77},
		{"any", 0, errors.New("no"), 1},
		{"its own", 127, errors.New("no"), 127},
	} {
		if got := failure(tc.code, tc.err); got != tc.want {
			t.Errorf("%s: exit code %d, want %d", tc.name, got, tc.want)
		}
	}
}
