package payloadrun_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

// TestScripts run where the job does, before and after it.
func TestScripts(t *testing.T) {
	began := time.Unix(1_000_000, 0)
	exit := func(status int) payload.Exit {
		return payload.Exit{WaitStatus: status, Started: began, Ended: began.Add(3 * time.Second)}
	}
	pre, post := job.PreScript, job.PostScript
	both := pre + `Cmd = "pre"` + "\n" + pre + `Arguments = "a 'b c'"` + "\n" + post + `Cmd = "/bin/post"` + "\nSuccess" + pre + "ExitCode = 0\nSuccess" + post + "ExitCode = 0"
	for name, tt := range map[string]struct {
		job     string
		knobs   map[string]string
		which   string
		w       *wrapper
		wrapped error // what the job wrapper says
		ran     bool
		good    bool
		code    int
		words   string
		publish string // an attribute that is told
	}{
		"none":              {which: pre},
		"before":            {job: both, which: pre, w: &wrapper{exit: exit(0)}, ran: true, good: true},
		"before, fails":     {job: both, which: pre, w: &wrapper{exit: exit(1 << 8)}, ran: true, publish: pre + "ExitCode"},
		"after":             {job: both, which: post, w: &wrapper{exit: exit(0)}, ran: true, good: true, publish: post + "ExitCode"},
		"after, fails":      {job: both, which: post, w: &wrapper{exit: exit(1 << 8)}, ran: true, publish: post + "ExitCode"},
		"forbidden":         {job: both, which: post, knobs: map[string]string{"STARTER_ALLOW_JOB_PRE_AND_POST_CMD": "false"}},
		"a bad knob":        {job: both, which: post, knobs: map[string]string{"STARTER_ALLOW_JOB_PRE_AND_POST_CMD": "1 +"}},
		"odd arguments":     {job: both + "\n" + pre + `Arguments = "'x"`, which: pre, code: shadow.HoldFailedToCreateProcess, words: pre + "Arguments"},
		"odd environment":   {job: both + "\n" + pre + `Environment = "'x"`, which: pre, code: shadow.HoldFailedToCreateProcess, words: pre + "Environment"},
		"odd target":        {job: both + "\n" + `ContainerTargetDir = "x"`, which: pre, code: shadow.HoldFailedToCreateProcess, words: "container_target_dir"},
		"not there":         {job: both, which: pre, w: &wrapper{startErr: &payload.StartError{Stage: payload.StageExec, Errno: syscall.ENOENT}}, code: shadow.HoldFailedToCreateProcess, words: "/pre"},
		"lost":              {job: both, which: pre, w: &wrapper{startErr: payload.ErrLost}, code: shadow.VacateContainerError, words: "ended under"},
		"the wrapper fails": {job: both, which: post, w: &wrapper{exit: exit(0)}, wrapped: errors.New("it has failed"), code: shadow.VacateStarterError, words: "it has failed"},
	} {
		t.Run(name, func(t *testing.T) {
			j := aJob(t, tt.job, tt.knobs)
			j.Settings.Backend = settings.BackendPod
			if tt.w == nil {
				tt.w = &wrapper{}
			}
			c, _, lost, _ := container(t, tt.w)
			lost <- payload.ErrLost
			s := &payloadrun.Scripts{Job: j, WrapperFailure: func() error { return tt.wrapped }}
			ran, good, err := s.Run(t.Context(), c, tt.which)
			if ran != tt.ran || good != tt.good {
				t.Errorf("ran: %v, good: %v, want %v, %v", ran, good, tt.ran, tt.good)
			}
			if tt.code == 0 && err != nil {
				t.Error(err)
			}
			if tt.code != 0 && (err == nil || failure.Of(err).Code != tt.code || !strings.Contains(err.Error(), tt.words)) {
				t.Errorf("%v, want %d %q", err, tt.code, tt.words)
			}
			ad := classads.NewAd()
			s.Publish(ad)
			for _, name := range []string{pre + "ExitCode", post + "ExitCode"} {
				if ad.Has(name) != (tt.publish == name) {
					t.Errorf("%s is told: %v", name, ad.Has(name))
				}
			}
			if tt.knobs != nil && len(tt.w.specs) > 0 {
				t.Error("a script ran that is forbidden")
			}
			if name == "before" {
				checkScript(t, j, tt.w.specs[0])
			}
		})
	}
}

// checkScript checks how a script was run.
func checkScript(t *testing.T, j *payloadrun.Job, spec payload.Spec) {
	t.Helper()
	box := j.Sandbox.Scratch()
	if spec.Path != box+"/pre" || !cmp.Equal(spec.Args, []string{job.ScriptArgv0(job.PreScript), "a", "b c"}) || spec.Dir != box || spec.UID != nobodys ||
		spec.Activation != "activation."+job.PreScript || !spec.ImageEnv || !cmp.Equal(spec.HideEnv, []string{"POD_*"}) {
		t.Errorf("%+v", spec)
	}
	if !slices.Contains(spec.Limits, payload.Limit{Resource: "core"}) {
		t.Errorf("limits %+v", spec.Limits)
	}
}

// TestScriptsAreAskedForOnce: a refusal holds for the rest of the job.
func TestScriptsAreAskedForOnce(t *testing.T) {
	j := aJob(t, job.PreScript+`Cmd = "pre"`+"\n"+job.PostScript+`Cmd = "post"`+"\nCoreSize = -1", map[string]string{"STARTER_ALLOW_JOB_PRE_AND_POST_CMD": "TARGET.Good"})
	w := &wrapper{}
	c, _, _, _ := container(t, w)
	s := &payloadrun.Scripts{Job: j, WrapperFailure: func() error { return nil }}
	if ran, _, err := s.Run(t.Context(), c, job.PreScript); ran || err != nil {
		t.Errorf("%v, %v", ran, err)
	}
	j.Ad.SetBool("Good", true) // by a program of the site, say
	if ran, _, err := s.Run(t.Context(), c, job.PostScript); ran || err != nil || len(w.specs) > 0 {
		t.Errorf("%v, %v", ran, err)
	}
	s = &payloadrun.Scripts{Job: j, WrapperFailure: func() error { return nil }}
	if ran, _, err := s.Run(t.Context(), c, job.PostScript); !ran || err != nil || !slices.Contains(w.specs[0].Limits, payload.Limit{Resource: "core", Soft: payload.Unlimited, Hard: payload.Unlimited}) {
		t.Errorf("%v, %v, %+v", ran, err, w.specs)
	}
}
