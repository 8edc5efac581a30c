package payloadrun_test

import (
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/payloadrun"
)

// TestNoNetwork is what becomes of docker_network_type.
func TestNoNetwork(t *testing.T) {
	const docker = "WantDocker = true\nDockerImage = \"busybox\"\n"
	kind := func(text string) string { return "DockerNetworkType = " + text }
	for name, tt := range map[string]struct {
		job, offers string
		site        map[string]string // its knobs
		none        bool
		code        int
	}{
		"not said":                    {job: docker},
		"none":                        {job: docker + kind(`"none"`), none: true},
		"none, without an image":      {job: kind(`"none"`), none: true},
		"the site's none":             {job: docker + kind(`"host"`), site: map[string]string{"NO_JOB_NETWORKING": "true"}, none: true},
		"host":                        {job: docker + kind(`"host"`)},
		"nat":                         {job: docker + kind(`"nat"`)},
		"empty":                       {job: docker + kind(`""`)},
		"no string":                   {job: docker + kind("7")},
		"an expression":               {job: docker + kind(`strcat("no", "ne")`), none: true},
		"Docker's own name":           {job: docker + kind(`"bridge"`), code: shadow.HoldFailedToCreateProcess},
		"other case":                  {job: docker + kind(`"None "`), none: true},
		"other case, no image":        {job: kind(`"NONE"`), none: true},
		"Apptainer's image":           {job: "SingularityImage = \"/cvmfs/x\"\n" + kind(`"campus"`), code: shadow.HoldFailedToCreateProcess},
		"another":                     {job: docker + kind(`"campus"`), offers: "lab, other", code: shadow.HoldFailedToCreateProcess},
		"another, container universe": {job: "WantContainer = true\nContainerImage = \"busybox\"\n" + kind(`"campus"`), code: shadow.HoldFailedToCreateProcess},
		"one that the slot offers":    {job: docker + kind(`"campus"`), offers: "lab, campus", code: shadow.VacateContainerError},
		"another, without an image":   {job: kind(`"campus"`), code: shadow.HoldFailedToCreateProcess},
	} {
		t.Run(name, func(t *testing.T) {
			j := aJob(t, tt.job, tt.site)
			if tt.offers != "" {
				j.Machine.SetString("DockerNetworks", tt.offers)
			}
			none, err := j.NoNetwork()
			code := 0
			if err != nil {
				code = failure.Of(err).Code
			}
			if none != tt.none || code != tt.code {
				t.Errorf("none: %v, %v; want %v, code %d", none, err, tt.none, tt.code)
			}
		})
	}
}

// TestImageFromNetwork: Apptainer fetches no image for a job without network.
func TestImageFromNetwork(t *testing.T) {
	const none = "DockerNetworkType = \"none\""
	for name, tt := range map[string]struct {
		image, knob string
		site        map[string]string
		code        int
	}{
		"a file":                {image: "a.sif"},
		"a URL":                 {image: "docker://x", code: shadow.HoldFailedToCreateProcess},
		"the site's URL":        {image: "docker://x", knob: "DEFAULT_CONTAINER_IMAGE", code: shadow.VacateContainerError},
		"the site's no network": {image: "oras://x", site: map[string]string{"NO_JOB_NETWORKING": "true"}, code: shadow.VacateContainerError},
	} {
		t.Run(name, func(t *testing.T) {
			j := aJob(t, none, tt.site)
			j.Contained = &payloadrun.Contained{Image: tt.image, Knob: tt.knob}
			none, err := j.NoNetwork()
			code := 0
			if err != nil {
				code = failure.Of(err).Code
			}
			if !none || code != tt.code {
				t.Errorf("none: %v, %v; want code %d", none, err, tt.code)
			}
		})
	}
}

// TestStartsWithoutNetwork: all that is started for a job without network has none, and where the pod cannot take
// it away, nothing is started, which is the site's affair.
func TestStartsWithoutNetwork(t *testing.T) {
	w := &wrapper{}
	c, _, _, _ := container(t, w)
	c.NoNetwork = true
	_, err := c.Start(t.Context(), payload.Spec{Path: "/a"})
	must(t, err)
	_, _, err = c.Run(t.Context(), payload.Spec{Path: "/b"})
	must(t, err)
	if diff := cmp.Diff([]payload.Spec{{Path: "/a", NoNetwork: true}, {Path: "/b", NoNetwork: true}}, w.specs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, refusal := range map[string]error{
		"no filters":     &payload.StartError{Stage: payload.StageNetwork, Errno: syscall.ENOSYS, Detail: "no seccomp"},
		"an old wrapper": &payload.RequestError{Op: payload.OpStart, Code: payload.CodeBadRequest, Message: `json: unknown field "no_network"`},
	} {
		w.startErr = refusal
		_, started := c.Start(t.Context(), payload.Spec{})
		_, _, ran := c.Run(t.Context(), payload.Spec{})
		for _, err := range []error{started, ran, failure.OfStart(started, job.Command{})} {
			if err == nil || failure.Of(err).Code != shadow.VacateContainerError {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	w.startErr = &payload.StartError{Stage: payload.StageExec, Errno: syscall.ENOENT}
	if _, _, err := c.Run(t.Context(), payload.Spec{}); err != w.startErr { //nolint:errorlint // the same one
		t.Errorf("another failure became %v", err)
	}
}
