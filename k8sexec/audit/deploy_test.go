package audit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
)

// deployed reads a manifest of deploy, which holds one pod.
func deployed(t *testing.T, path ...string) *corev1.Pod {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "deploy"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(text, &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// TestDeployedSpares: the spares of deploy/components/spares are like the payload
// container of deploy/glidein, and the configuration beside them counts them.
func TestDeployedSpares(t *testing.T) {
	pod := deployed(t, "glidein", "pod.yaml")
	b := &Inspector{Options: options.Options{ControlDir: "/run/podstarter/control", Containers: []string{"payload"}}}
	component := deployed(t, "components", "spares", "pod.yaml")
	pod.Spec.Volumes = append(pod.Spec.Volumes, component.Spec.Volumes...)
	for _, c := range component.Spec.Containers {
		switch c.Name {
		case "pilot":
		case "payload":
			podapi.SpecOf(pod, c.Name).Resources.Requests = c.Resources.Requests
		default:
			pod.Spec.Containers = append(pod.Spec.Containers, c)
			b.Options.Containers = append(b.Options.Containers, c.Name)
			b.Options.Spares++
		}
	}
	if b.Options.Spares == 0 {
		t.Fatal("there are no spares")
	}
	var f findings
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; b.isPayload(c.Name) {
			b.checkContainer(c, pod.Spec.SecurityContext, &f)
		}
	}
	b.checkSpares(pod, &f)
	b.checkSharedMemory(pod, &f)
	if f.mistakes != nil || f.warnings != nil {
		t.Errorf("mistakes %v, warnings %v", f.mistakes, f.warnings)
	}
	text, err := os.ReadFile("../../deploy/components/spares/config/70-spares.conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{options.KnobContainers + " = " + strings.Join(b.Options.Containers, ", "), options.KnobSpares + " = " + strconv.Itoa(b.Options.Spares)} {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}
