package settings

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
)

// TestKnobsNotGiven: a site that sets such a knob learns of it, unless it asks for what it gets anyway.
func TestKnobsNotGiven(t *testing.T) {
	for name, tt := range map[string]struct {
		knobs map[string]string
		want  []string
	}{
		"none": {},
		"HTCondor's defaults": {knobs: map[string]string{
			"DOCKER_DROP_ALL_CAPABILITIES": "true", "MOUNT_UNDER_SCRATCH": `"/tmp,/var/tmp"`, "DOCKER_NETWORKS": "", "DOCKER_MOUNT_VOLUMES": "", "DOCKER": "/usr/bin/docker", "DOCKER_IMAGE_CACHE_SIZE": "8",
		}},
		"all": {
			knobs: map[string]string{
				"DOCKER_NETWORKS": "campus", "DOCKER_EXTRA_ARGUMENTS": "--privileged", "DOCKER_MOUNT_VOLUMES": "A, B", "DOCKER_VOLUME_DIR_A": "/a", "DOCKER_VOLUME_DIR_A_MOUNT_IF": "true",
				"DOCKER_SHM_SIZE": "1000", "DOCKER_DROP_ALL_CAPABILITIES": "TARGET.Owner == \"x\"", "DOCKER_RUN_AS_ROOT": "true", "SINGULARITY_EXTRA_ARGUMENTS": "--nv",
				"MOUNT_UNDER_SCRATCH": `"/tmp,/scratch"`,
			},
			want: []string{
				"DOCKER_NETWORKS", "DOCKER_EXTRA_ARGUMENTS", "DOCKER_MOUNT_VOLUMES", "DOCKER_VOLUME_DIR_A", "DOCKER_VOLUME_DIR_A_MOUNT_IF",
				"DOCKER_SHM_SIZE", "DOCKER_DROP_ALL_CAPABILITIES", "DOCKER_RUN_AS_ROOT", "SINGULARITY_EXTRA_ARGUMENTS", "MOUNT_UNDER_SCRATCH",
			},
		},
		"for the starter alone": {knobs: map[string]string{"STARTER.DOCKER_SHM_SIZE": "1"}, want: []string{"STARTER.DOCKER_SHM_SIZE"}},
		"an expression":         {knobs: map[string]string{"MOUNT_UNDER_SCRATCH": `ifThenElse(TARGET.X, "/tmp", "/var/tmp")`}, want: []string{"MOUNT_UNDER_SCRATCH"}},
	} {
		var got []string
		for _, n := range KnobsNotGiven(config.FromMap(tt.knobs)) {
			got = append(got, n.Name)
			if text := n.String(); !strings.HasPrefix(text, n.Name) || n.Instead == "" {
				t.Errorf("%s: %q, change %q", name, text, n.Instead)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestKnobsNotGivenPage: the page for admins names all of them.
func TestKnobsNotGivenPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/admin/images.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range knobsWithoutEffect {
		if !strings.Contains(string(page), "`"+strings.Replace(w.name, "*", "…", 1)+"`") {
			t.Errorf("docs/admin/images.md does not name %s", w.name)
		}
	}
}
