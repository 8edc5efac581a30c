package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReferences: those that are chosen have pods, ports and images of their own, and the others go.
func TestReferences(t *testing.T) {
	p := testPool(1)
	_, gone := p.executionPoints()
	for _, r := range references {
		if !slices.Contains(gone, r.pod) {
			t.Errorf("%s stays, though nobody wants it", r.pod)
		}
	}
	p.settings.StockDocker = true
	plans, gone := p.executionPoints()
	if slices.Contains(gone, "glidein-docker") {
		t.Error("the chosen one goes")
	}
	if got := plans[len(plans)-1].pod; got != "glidein-docker" {
		t.Errorf("the last plan is of %s", got)
	}
}

// TestDockerPlan: the daemon starts before the pilot, in the same image, and has the sandboxes and the socket where the
// pilot has them. Only the daemon is privileged.
func TestDockerPlan(t *testing.T) {
	p := testPool(1)
	p.settings.StockDocker = true
	p.settings.Ports["glidein-docker"] = 9
	p.images["stock-docker"] = "r/stock-docker:1"
	pod, others, err := p.edited(glidein(), p.referencePlan(p.chosenReferences()[0]))
	if err != nil {
		t.Fatal(err)
	}
	spec := child(pod, "spec")
	images := map[string]any{}
	var privileged []any
	for _, c := range containers(spec) {
		images[c["name"].(string)] = c["image"]
		if child(c, "securityContext")["privileged"] == true {
			privileged = append(privileged, c["name"])
		}
	}
	want := map[string]any{"prepare": "r/stock-docker:1", "dockerd": "r/stock-docker:1", "pilot": "r/stock-docker:1"}
	if diff := cmp.Diff(want, images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"dockerd"}, privileged); diff != "" {
		t.Errorf("privileged containers (-want +got):\n%s", diff)
	}
	inits := list(spec, "initContainers")
	if last := inits[len(inits)-1]; last["name"] != "dockerd" || last["restartPolicy"] != "Always" || last["startupProbe"] == nil {
		t.Errorf("the pilot does not wait for the daemon: %v", last)
	}
	if command, want := inits[len(inits)-1]["command"].([]any), "/usr/sbin/dockerd"; len(command) < 5 || command[4] != want {
		t.Errorf("the shell does not become %s: %v", want, command)
	}
	pilot, err := json.Marshal(list(spec, "containers"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`{"name":"DOCKER_HOST","value":"unix:///run/docker-socket/docker.sock"}`, `"mountPath":"/run/docker-socket"`} {
		if !strings.Contains(string(pilot), part) {
			t.Errorf("no %s in the pilot: %s", part, pilot)
		}
	}
	config := others[len(others)-1].String("data", "90-test.conf")
	for _, line := range []string{"SHARED_PORT_PORT = 9", "STARTER = $(SBIN)/condor_starter", `StockReference = "docker"`, "START = TARGET.WantDocker =?= true || TARGET.WantContainer =?= true || TARGET.ConformanceImage isnt undefined"} {
		if !strings.Contains(config, line+"\n") {
			t.Errorf("no %q in\n%s", line, config)
		}
	}
	if got := others[len(others)-1].String("metadata", "name"); got != "glidein-docker-config" {
		t.Errorf("its configuration is called %s", got)
	}
}

// TestApptainerPlan: the starter may make namespaces and mounts, and the image says that the registry speaks plain HTTP.
func TestApptainerPlan(t *testing.T) {
	p := testPool(1)
	p.settings.StockApptainer = true
	p.images["stock-apptainer"] = "r/stock-apptainer:1"
	r := p.chosenReferences()[0]
	pod, others, err := p.edited(glidein(), p.referencePlan(r))
	if err != nil {
		t.Fatal(err)
	}
	pilot := list(child(pod, "spec"), "containers")[0]
	if pilot["image"] != "r/stock-apptainer:1" || child(pilot, "securityContext")["privileged"] != true {
		t.Errorf("the pilot is %v", pilot)
	}
	if config := others[len(others)-1].String("data", "90-test.conf"); !strings.Contains(config, "SINGULARITY = /usr/bin/apptainer\n") {
		t.Errorf("no Apptainer in\n%s", config)
	}
	want := "[[registry]]\nlocation = \"127.0.0.1:4\"\ninsecure = true\n"
	if diff := cmp.Diff(want, string(r.files(p)[0].Data)); diff != "" {
		t.Errorf("registries.conf (-want +got):\n%s", diff)
	}
}
