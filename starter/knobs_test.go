package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/image"
	"podstarter/k8sexec"
)

var update = flag.Bool("update", false, "write the pages that are made from the table of knobs")

const (
	knobPage    = "../docs/knobs.md"
	knobSnippet = "../condor_config.d/50-podstarter.conf"

	snippetBegin = "# --- knobs, written by `make docs` ---\n"
	snippetEnd   = "# --- end of knobs ---\n"
)

// TestKnobPages keeps docs/knobs.md and the snippet for condor_config.d equal to
// the table in knobs.go; `make docs` writes them.
func TestKnobPages(t *testing.T) {
	check(t, knobPage, func(string) string { return knobsAsMarkdown() })
	check(t, knobSnippet, func(old string) string {
		before, rest, ok := strings.Cut(old, snippetBegin)
		_, after, ok2 := strings.Cut(rest, snippetEnd)
		if !ok || !ok2 {
			t.Fatalf("%s lacks the lines %q and %q", knobSnippet, snippetBegin, snippetEnd)
		}
		return before + snippetBegin + knobsAsConfig() + snippetEnd + after
	})
}

func check(t *testing.T, path string, page func(old string) string) {
	t.Helper()
	old, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := page(string(old))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(old)); diff != "" {
		t.Errorf("%s is not what the table says; run `make docs` (-want +got):\n%s", path, diff)
	}
}

func knobsAsMarkdown() string {
	var b strings.Builder
	b.WriteString("# Knobs\n\nWritten from the table in `starter/knobs.go` by `make docs`. All are HTCondor configuration knobs of the execution\npoint; `$ENV(NAME:)` is the environment of the pilot container.\n\n| knob | default | meaning |\n| --- | --- | --- |\n")
	for _, k := range knobs {
		def := "`" + k.def + "`"
		if k.def == "" {
			def = "(empty)"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.name, def, k.sentence)
	}
	return b.String()
}

func knobsAsConfig() string {
	var b strings.Builder
	for _, k := range knobs {
		fmt.Fprintf(&b, "\n# %s\n%s = %s\n", k.sentence, k.name, k.def)
	}
	return strings.ReplaceAll(b.String(), " \n", "\n") + "\n"
}

func TestReadSettings(t *testing.T) {
	tests := map[string]struct {
		knobs map[string]string
		want  string // a part of the error; empty for none
	}{
		"defaults":            {knobs: nil},
		"no number":           {knobs: map[string]string{"POD_STARTER_PAYLOAD_UID": "alice"}, want: "POD_STARTER_PAYLOAD_UID"},
		"root is no payload":  {knobs: map[string]string{"POD_STARTER_PAYLOAD_UID": "0"}, want: "POD_STARTER_PAYLOAD_UID"},
		"unknown backend":     {knobs: map[string]string{"POD_STARTER_BACKEND": "cloud"}, want: "POD_STARTER_BACKEND"},
		"relative directory":  {knobs: map[string]string{"POD_STARTER_CONTROL_DIR": "control"}, want: "POD_STARTER_CONTROL_DIR"},
		"no container":        {knobs: map[string]string{"POD_STARTER_CONTAINERS": " , "}, want: "POD_STARTER_CONTAINERS"},
		"no truth value":      {knobs: map[string]string{"POD_STARTER_THROWAWAY_TAGS": "perhaps"}, want: "POD_STARTER_THROWAWAY_TAGS"},
		"containers are kept": {knobs: map[string]string{"POD_STARTER_RESET": "Image"}},
		"unknown reset":       {knobs: map[string]string{"POD_STARTER_RESET": "never"}, want: "POD_STARTER_RESET"},
		"timeout of no time":  {knobs: map[string]string{"POD_STARTER_BIND_TIMEOUT": "0"}, want: "POD_STARTER_BIND_TIMEOUT"},
		"image knobs":         {knobs: map[string]string{"POD_STARTER_DEFAULT_IMAGE": "Debian:12"}, want: "POD_STARTER_DEFAULT_IMAGE"},
		"environment missing": {knobs: map[string]string{"POD_STARTER_POD_NAME": "UNDEFINED", "POD_STARTER_BACKEND": "local"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := readSettings(config.FromMap(tt.knobs))
			if tt.want == "" && err != nil {
				t.Errorf("readSettings: %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("readSettings: error %v, want one that names %s", err, tt.want)
			}
		})
	}
}

// TestImageSubcodes: the names that are refused before a backend sees them and
// those that a backend refuses are told apart by one set of numbers.
func TestImageSubcodes(t *testing.T) {
	if image.SubcodeInvalidReference != k8sexec.SubcodeInvalidReference {
		t.Errorf("an invalid reference is %d here and %d there", image.SubcodeInvalidReference, k8sexec.SubcodeInvalidReference)
	}
	if image.SubcodeNotInRegistry <= k8sexec.SubcodeOutOfMemory {
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
