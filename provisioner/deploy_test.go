package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"podstarter/provisioner/platform/kube"
	"podstarter/provisioner/round"
	"podstarter/provisioner/settings"
	"podstarter/provisioner/template"
)

// What deploy/provisioner has can be read, and its pods end when the template says
// so.
func TestDeploy(t *testing.T) {
	set, err := settings.Read("../deploy/provisioner/config/provisioner.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if set.Limits.Pods == 0 {
		t.Error("without an edit there is no limit of pods")
	}
	templates, err := template.Load("../deploy/provisioner/templates")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.New(t.Context(), fake.NewClientset(), set.Name, "podstarter", kube.DefaultGPU, templates, nil); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile("../deploy/provisioner/glidein/config/75-provisioned.conf")
	if err != nil {
		t.Fatal(err)
	}
	accept, retire := seconds(t, string(config), `POD_STARTER_ACCEPT_TIME = (\d+)`), seconds(t, string(config), `POD_STARTER_RETIRE_TIME = (\d+)`)
	deadline := seconds(t, templates[0].Manifest, `activeDeadlineSeconds: (\d+)`)
	if got := templates[0].Shapes[0].Lifetime; got != accept {
		t.Errorf("the template's lifetime is %s, and its pods take jobs for %s", got, accept)
	}
	if deadline <= accept+retire {
		t.Errorf("Jobs are killed after %s, and their pods may go on for %s", deadline, accept+retire)
	}
	if !strings.Contains(templates[0].Manifest, "POD_STARTER_ACCEPT_TIME = ") {
		t.Error("the manifest lacks the configuration of its pods")
	}
}

// A provisioner that ends has the time to take its offline ads back, and then gives
// its lease to the next one.
func TestDeployLetsItEnd(t *testing.T) {
	text, err := os.ReadFile("../deploy/provisioner/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := seconds(t, string(text), `terminationGracePeriodSeconds: (\d+)`), round.DefaultCallTime+ending; got <= want {
		t.Errorf("it is killed after %s; a call and the end of its ads take up to %s", got, want)
	}
}

// The policies confine the pilots that the provisioner makes, in whatever namespace
// they are.
func TestPoliciesKnowThePilots(t *testing.T) {
	manifest, err := os.ReadFile("../deploy/provisioner/templates/glidein.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`kind: ServiceAccount\nmetadata:\n  name: (\S+)\n  namespace: (\S+)\n`).FindStringSubmatch(string(manifest))
	if found == nil {
		t.Fatal("the manifest has no ServiceAccount")
	}
	account := fmt.Sprintf("'system:serviceaccount:%s:%s'", found[2], found[1])
	policy, err := os.ReadFile("../deploy/policy/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	conditions := regexp.MustCompile(`- name: is-pilot\n +expression: (.*)\n`).FindAllStringSubmatch(string(policy), -1)
	if len(conditions) == 0 {
		t.Fatal("no policy names pilots")
	}
	for _, c := range conditions {
		if !strings.Contains(c[1], account) {
			t.Errorf("a policy is for %s, and not for %s", c[1], account)
		}
	}
}

func seconds(t *testing.T, text, pattern string) time.Duration {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("there is no %s", pattern)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(n) * time.Second
}
