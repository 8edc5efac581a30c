package main

import (
	"log/slog"
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
	"podstarter/starter/settings"
)

// TestImageSubcodes: the names that are refused before a backend sees them and
// those that a backend refuses are told apart by one set of numbers.
func TestImageSubcodes(t *testing.T) {
	if image.SubcodeInvalidReference != verdict.SubcodeInvalidReference {
		t.Errorf("an invalid reference is %d here and %d there", image.SubcodeInvalidReference, verdict.SubcodeInvalidReference)
	}
	if image.SubcodePlatform != verdict.SubcodePlatform {
		t.Errorf("another processor is %d here and %d there", image.SubcodePlatform, verdict.SubcodePlatform)
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
		"as delivered": {nil, `HasContainer HasDocker HasDockerURL SINGULARITY_CAN_USE_REGISTRY SINGULARITY_CAN_USE_SIF=false DockerVersion PodStarterImagePolicy="optional"`},
		"a map":        {map[string]string{image.KnobMap: file}, `HasContainer HasDocker HasDockerURL HasSIF HasSandboxImage SINGULARITY_CAN_USE_REGISTRY SINGULARITY_CAN_USE_SIF=false DockerVersion PodStarterImagePolicy="optional"`},
		"a carrier":    {map[string]string{image.KnobCarrier: "r.example/carrier"}, `HasContainer HasDocker HasDockerURL HasSIF HasSandboxImage HasSingularity HAS_SINGULARITY SINGULARITY_CAN_USE_REGISTRY SINGULARITY_CAN_USE_SIF=true DockerVersion PodStarterImagePolicy="optional"`},
		"never":        {map[string]string{image.KnobPolicy: "never", image.KnobMap: file}, `PodStarterImagePolicy="never"`},
		"required":     {map[string]string{image.KnobPolicy: "required"}, `HasContainer HasDocker HasDockerURL SINGULARITY_CAN_USE_REGISTRY SINGULARITY_CAN_USE_SIF=false DockerVersion PodStarterImagePolicy="required"`},
		"by job":       {map[string]string{image.KnobPolicy: `TARGET.X ? "never" : "optional"`}, `HasContainer HasDocker HasDockerURL SINGULARITY_CAN_USE_REGISTRY SINGULARITY_CAN_USE_SIF=false DockerVersion`},
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
				case name == "SINGULARITY_CAN_USE_SIF":
					name += "=" + value.String()
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

// TestUnpackerMissing: a site that forgot a program learns of it before a job does.
func TestUnpackerMissing(t *testing.T) {
	cfg := config.FromMap(map[string]string{
		settings.KnobBackend.Name: settings.BackendPod, settings.KnobPodName.Name: "pod", image.KnobCarrier: "registry.example.org/pause:3",
	})
	set, err := settings.Read(cfg)
	if os.Getuid() == 0 && err != nil {
		t.Fatal(err)
	}
	_, err = newBackend(t.Context(), set, cfg, &calls{}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasPrefix(err.Error(), image.KnobCarrier+": ") || !strings.Contains(err.Error(), "install condor_pod_unpacker") {
		t.Errorf("error %v", err)
	}
}
