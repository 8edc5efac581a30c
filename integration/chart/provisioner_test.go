package chart

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the provisioner's manifest anew")

// TestProvisionersManifest: the manifest of the provisioner's template is what kustomize makes of the glidein, and the provisioner's
// kustomization has all that it needs.
func TestProvisionersManifest(t *testing.T) {
	pods, err := kustomized(t, filepath.Join(manifests, "provisioner", "glidein"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(manifests, "provisioner", "templates", "glidein.yaml")
	if *update {
		if err := os.WriteFile(path, pods, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := byName(pods)
	if err != nil {
		t.Fatal(err)
	}
	got, err := byName(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not what kustomize makes of deploy/provisioner/glidein; to write it: go -C integration/chart test . -run TestProvisionersManifest -update\n(-kustomization +file)\n%s", path, diff)
	}

	whole, err := kustomized(t, filepath.Join(manifests, "provisioner"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := byName(whole)
	if err != nil {
		t.Fatal(err)
	}
	for key, o := range want {
		if strings.HasPrefix(key, "Job/") {
			if all[key] != nil {
				t.Errorf("the provisioner's kustomization has the %s itself", key)
			}
			continue
		}
		if diff := cmp.Diff(o, all[key]); diff != "" {
			t.Errorf("%s of the pods, in the provisioner's kustomization:\n%s", key, diff)
		}
	}
}

// TestProvisionersTokens: the component lets the provisioner create Secrets, and do nothing else with them.
func TestProvisionersTokens(t *testing.T) {
	text, err := kustomized(t, siteDir(t, "resources: [../provisioner]\ncomponents: [../components/provisioner-tokens]\n"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := byName(text)
	if err != nil {
		t.Fatal(err)
	}
	var secrets []any
	for _, rule := range all["Role/provisioner"]["rules"].([]any) {
		if strings.Contains(fmt.Sprint(rule.(object)["resources"]), "secrets") {
			secrets = append(secrets, rule.(object)["verbs"])
		}
	}
	if diff := cmp.Diff([]any{[]any{"create"}}, secrets); diff != "" {
		t.Errorf("rights on Secrets (-want +got):\n%s", diff)
	}
}

// TestProvisionersNamespace: who may create pods can have them mount each secret of their namespace, and a quota or a deletion is of
// a whole namespace. So the provisioner shares none with the central services.
func TestProvisionersNamespace(t *testing.T) {
	namespaces := func(of ...string) map[string]bool {
		found := map[string]bool{}
		for _, dir := range of {
			text, err := kustomized(t, filepath.Join(manifests, dir))
			if err != nil {
				t.Fatal(err)
			}
			all, err := byName(text)
			if err != nil {
				t.Fatal(err)
			}
			for key, o := range all {
				namespace, ok := o["metadata"].(object)["namespace"].(string)
				if !ok {
					t.Errorf("%s: %s has no namespace", dir, key)
				}
				found[namespace] = true
			}
		}
		return found
	}
	pool := namespaces("pool", "pool-single")
	for namespace := range namespaces("provisioner", "provisioner/glidein") {
		if pool[namespace] {
			t.Errorf("the provisioner and the pool are in the namespace %s", namespace)
		}
	}
}
