package provision

import (
	"os"
	"slices"
	"strings"
	"testing"

	"podstarter/provisioner/platform/kube"
	"podstarter/provisioner/template"
)

// What the tests make of a manifest for several containers is one that the provisioner takes, and each container has its own
// annotation, argument and volume.
func TestSeveral(t *testing.T) {
	manifest, err := os.ReadFile("../../deploy/provisioner/templates/glidein.yaml")
	if err != nil {
		t.Fatal(err)
	}
	three := Template{Name: "three", Containers: 3, Partitionable: true, Text: "shapes:\n- {name: one, cpus: 1, memory: 256Mi, disk: 64Mi}\n"}
	text, configs, err := several(string(manifest), three.payloads())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"three.yaml": text, "three.template.yaml": three.text("here")} {
		if err := os.WriteFile(dir+"/"+name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	templates, err := template.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := kube.Check(kube.Config{}, templates); err != nil {
		t.Error(err)
	}
	for _, want := range []string{`/control/payload-3"`, `nonce-payload-3'`, `"name":"shm-payload-3"`} {
		if n := strings.Count(text, want); n < 1 {
			t.Errorf("the manifest has no %s", want)
		}
	}
	if n := strings.Count(text, `"name":"shm-payload-2"`); n != 2 {
		t.Errorf("the volume of the second container is named %d times, want a volume and its mount", n)
	}
	if len(configs) != 1 || !slices.ContainsFunc(templates, func(t template.Template) bool { return t.Slots == 3 && t.Partitionable }) {
		t.Errorf("%d ConfigMaps, templates %+v", len(configs), templates)
	}
}
