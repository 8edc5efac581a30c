package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/image"
	"podstarter/k8sexec/verdict"
)

// TestImageSubcodes: the names that are refused before a backend sees them and
// those that a backend refuses are told apart by one set of numbers.
func TestImageSubcodes(t *testing.T) {
	if image.SubcodeInvalidReference != verdict.SubcodeInvalidReference {
		t.Errorf("an invalid reference is %d here and %d there", image.SubcodeInvalidReference, verdict.SubcodeInvalidReference)
	}
	if image.SubcodeNotInRegistry <= verdict.SubcodeOutOfMemory {
		t.Errorf("subcode %d has two meanings", image.SubcodeNotInRegistry)
	}
}

// TestImageAbilities: what slots promise follows from the image knobs.
func TestImageAbilities(t *testing.T) {
	file := filepath.Join(t.TempDir(), "images.map")
	if err := os.WriteFile(file, []byte("* x.sif docker.io/library/debian\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		knobs map[string]string
		want  string
	}{
		"as delivered": {nil, `HasContainer HasDocker HasDockerURL DockerVersion PodStarterImagePolicy="optional"`},
		"a map":        {map[string]string{image.KnobMap: file}, `HasContainer HasDocker HasDockerURL HasSIF HasSandboxImage DockerVersion PodStarterImagePolicy="optional"`},
		"never":        {map[string]string{image.KnobPolicy: "never", image.KnobMap: file}, `PodStarterImagePolicy="never"`},
		"required":     {map[string]string{image.KnobPolicy: "required"}, `HasContainer HasDocker HasDockerURL DockerVersion PodStarterImagePolicy="required"`},
		"by job":       {map[string]string{image.KnobPolicy: `TARGET.X ? "never" : "optional"`}, `HasContainer HasDocker HasDockerURL DockerVersion`},
	} {
		t.Run(name, func(t *testing.T) {
			site, err := image.NewSite(config.FromMap(tt.knobs))
			if err != nil {
				t.Fatal(err)
			}
			ad := classads.NewAd()
			imageAbilities(ad, site)
			var got []string
			for name, value := range ad.All() {
				switch {
				case name == "PodStarterImagePolicy":
					name += "=" + value.String()
				case name == "DockerVersion":
				case value.String() != "true":
					t.Errorf("%s = %s", name, value)
				}
				got = append(got, name)
			}
			want := strings.Fields(tt.want)
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
