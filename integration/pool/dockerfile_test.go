package main

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/pool/internal/statedir"
)

// TestPilotFiles: the pool's own pilot image has what deploy/image/Dockerfile copies, each file from the same place.
func TestPilotFiles(t *testing.T) {
	text, err := os.ReadFile("../../deploy/image/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^COPY ([^-].*)$`).FindAllStringSubmatch(string(text), -1) {
		words := strings.Fields(line[1])
		to := words[len(words)-1]
		for _, from := range words[:len(words)-1] {
			if strings.HasSuffix(to, "/") {
				want[to+path.Base(from)] = "/checkout/" + from
			} else {
				want[to] = "/checkout/" + from
			}
		}
	}
	got := map[string]string{}
	p := &pool{dir: statedir.Dir{Module: "/checkout"}}
	for _, f := range slices.Concat(p.support(), p.pilotFiles()) {
		got[f.Path] = f.Source
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of the Dockerfile (-) and of the pool (+):\n%s", diff)
	}
}

// TestChooseDockerfile: the image of the Dockerfile stays chosen, and is refused where it cannot be.
func TestChooseDockerfile(t *testing.T) {
	for _, tc := range []struct {
		name     string
		settings statedir.Settings
		fail     string
	}{
		{"not chosen", statedir.Settings{Condor: "23.9", Guests: 1}, ""},
		{"chosen", statedir.Settings{Condor: "25.14", Dockerfile: true}, ""},
		{"in a guest", statedir.Settings{Condor: "25.14", Dockerfile: true, Guests: 1}, "leave --guest or --dockerfile out"},
		{"another HTCondor", statedir.Settings{Condor: "23.9", Dockerfile: true}, "and this pool 23.9"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := (&pool{settings: tc.settings}).checkDockerfile()
			if (err != nil) != (tc.fail != "") || err != nil && !strings.Contains(err.Error(), tc.fail) {
				t.Errorf("error %v, want one with %q", err, tc.fail)
			}
		})
	}
}
