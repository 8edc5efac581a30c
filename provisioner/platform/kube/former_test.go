package kube

import (
	"strings"
	"testing"
)

// Units say from which manifest they were made, so that a provisioner which starts anew
// with another one knows them apart.
func TestUnitsOfAnotherManifest(t *testing.T) {
	for _, manifest := range []string{podManifest, jobManifest} {
		w := newWorld(t, manifest)
		if err := w.cluster.Create(t.Context(), spec1); err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]bool{manifest: false, strings.Replace(manifest, "spec:", "# mended\nspec:", 1): true} {
			next, err := New(t.Context(), w.client, w.cluster.name, "ns", DefaultGPU, templates(text), nil)
			if err != nil {
				t.Fatal(err)
			}
			all, err := next.List(t.Context())
			if err != nil || len(all) != 1 || all[0].Former != want {
				t.Errorf("%+v, %v", all, err)
			}
		}
	}
}
