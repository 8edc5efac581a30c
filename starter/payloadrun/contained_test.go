package payloadrun_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/condor/shadow"
	"podstarter/localexec/apptainer"
	"podstarter/starter/failure"
)

const sif = "WantContainer = true\nWantSIF = true\nContainerImage = \"x.sif\"\n"

// TestContain: which jobs run in which image, and what of the site's configuration keeps them from it.
func TestContain(t *testing.T) {
	type m = map[string]string
	for name, tt := range map[string]struct {
		job, machine string
		knobs        m
		image, knob  string // of the result; no image: the job runs without
		err          string // the job goes back to the queue, and the reason says this
	}{
		"no image":                   {},
		"only a name":                {job: `ContainerImage = "x.sif"`},
		"a file":                     {job: sif, image: "x.sif"},
		"a directory":                {job: "WantSandboxImage = true\nContainerImage = \"/x\"", image: "/x"},
		"from a registry":            {job: "WantDockerImage = true\nContainerImage = \"docker://x\"", image: "docker://x"},
		"a file by its older name":   {job: sif + `SingularityImage = "y.sif"`, image: "y.sif"},
		"the site's for all":         {job: sif, knobs: m{"SINGULARITY_IMAGE_EXPR": `"/site.sif"`}, image: "/site.sif", knob: "SINGULARITY_IMAGE_EXPR"},
		"the site's for others":      {job: sif, knobs: m{"SINGULARITY_IMAGE_EXPR": `TARGET.None`}, image: "x.sif"},
		"HTCondor's default":         {job: sif + `SingularityImage = "y.sif"`, knobs: m{"SINGULARITY_IMAGE_EXPR": "SingularityImage"}, image: "y.sif"},
		"no string":                  {job: sif, knobs: m{"SINGULARITY_IMAGE_EXPR": "7"}, image: "x.sif"},
		"no expression":              {job: sif, knobs: m{"SINGULARITY_IMAGE_EXPR": "/x.sif"}, err: "SINGULARITY_IMAGE_EXPR"},
		"everybody":                  {job: `SingularityImage = "y.sif"`, knobs: m{"SINGULARITY_JOB": "true"}, image: "y.sif"},
		"whoever has an image":       {knobs: m{"SINGULARITY_JOB": "TARGET.SingularityImage isnt undefined"}},
		"everybody, without a name":  {knobs: m{"SINGULARITY_JOB": "true"}, err: "SINGULARITY_JOB"},
		"everybody, by no condition": {knobs: m{"SINGULARITY_JOB": "perhaps so"}, err: "SINGULARITY_JOB"},
		"the default":                {knobs: m{"USE_DEFAULT_CONTAINER": "true", "DEFAULT_CONTAINER_IMAGE": `"/d.sif"`}, image: "/d.sif", knob: "DEFAULT_CONTAINER_IMAGE"},
		"no default for images":      {job: sif, knobs: m{"USE_DEFAULT_CONTAINER": "true", "DEFAULT_CONTAINER_IMAGE": `"/d.sif"`}, image: "x.sif"},
		"no default for these jobs":  {knobs: m{"USE_DEFAULT_CONTAINER": "TARGET.None is 1", "DEFAULT_CONTAINER_IMAGE": `"/d.sif"`}},
		"a default that is none":     {knobs: m{"USE_DEFAULT_CONTAINER": "true", "DEFAULT_CONTAINER_IMAGE": "/d.sif"}, err: "DEFAULT_CONTAINER_IMAGE"},
		"no runtime":                 {job: sif, knobs: m{"SINGULARITY": "apptainer"}, err: "SINGULARITY is"},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := m{"SINGULARITY": "/usr/bin/apptainer"}
			for name, value := range tt.knobs {
				knobs[name] = value
			}
			j := aJob(t, tt.job, knobs)
			err := j.Contain()
			if tt.err != "" {
				if err == nil || failure.Of(err).Code != shadow.VacateContainerError || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v", err)
				}
				return
			}
			must(t, err)
			if j.Contained == nil {
				if tt.image != "" {
					t.Error("the job runs without an image")
				}
				return
			}
			if j.Contained.Image != tt.image || j.Contained.Knob != tt.knob {
				t.Errorf("image %q by %q", j.Contained.Image, j.Contained.Knob)
			}
		})
	}
}

// TestBindsAreTheUsers: what the user of the job cannot see is not mounted, and nobody learns from the outcome whether it is there.
func TestBindsAreTheUsers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"open", "closed", "closed/inside"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	for at := dir; at != "/"; at = filepath.Dir(at) { // of the test framework
		info, err := os.Stat(at)
		must(t, err)
		if info.Mode()&0o005 != 0o005 {
			must(t, os.Chmod(at, 0o755))
		}
	}
	must(t, os.Chmod(filepath.Join(dir, "closed"), 0o700))
	process := exec.Command("sleep", "1000") // of this test's user, whose directories the kernel shows to those who may look into it
	must(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	open, closed, other := filepath.Join(dir, "open"), filepath.Join(dir, "closed", "inside"), fmt.Sprintf("/proc/%d/root/etc", process.Process.Pid)
	j := aJob(t, sif, map[string]string{"SINGULARITY": "/usr/bin/apptainer", "SINGULARITY_BIND_EXPR": `"` + open + "," + closed + "," + other + `"`})
	must(t, j.Contain())
	j.Contained.Runtime = apptainer.Runtime{Version: "apptainer version 1"}
	cmd, spec, err := j.Main("a", "", nil)
	must(t, err)
	args := strings.Join(spec.Args, " ")
	if !strings.Contains(args, "-B "+open) || os.Getuid() == 0 && (strings.Contains(args, closed) || strings.Contains(args, other)) {
		t.Error(args)
	}
	if cmd.Path != "/usr/bin/apptainer" || !strings.HasSuffix(args, " x.sif /bin/job") || spec.ImageEnv || spec.Links != nil {
		t.Errorf("%+v\n%+v", cmd, spec)
	}
}
