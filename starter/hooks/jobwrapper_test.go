package hooks_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/hooks"
	"podstarter/starter/hostprog/hostprogtest"
	"podstarter/starter/settings"
)

// TestJobWrapper: a site's wrapper starts all jobs, those with images if the site wants
// it so.
func TestJobWrapper(t *testing.T) {
	const images = "POD_STARTER_WRAP_IMAGES"
	for name, tt := range map[string]struct {
		knobs map[string]string
		job   string
		image bool
		use   bool
	}{
		"a plain job":              {use: true},
		"an image":                 {image: true, use: true},
		"no images":                {knobs: map[string]string{images: "false"}, image: true},
		"no images, none":          {knobs: map[string]string{images: "false"}, use: true},
		"no images, docker":        {knobs: map[string]string{images: "false"}, job: "WantDocker = true"},
		"no images, container":     {knobs: map[string]string{images: "false"}, job: "WantContainer = true"},
		"some images":              {knobs: map[string]string{images: "TARGET.Good"}, job: "Good = true", image: true, use: true},
		"not understood, the same": {knobs: map[string]string{images: "1 +"}, image: true, use: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := hostprogtest.Script(t, "")
			knobs := map[string]string{"USER_JOB_WRAPPER": path}
			for name, value := range tt.knobs {
				knobs[name] = value
			}
			o, _ := site(t, knobs, tt.job)
			var w hooks.Wrapper
			must(t, w.Bring(o))
			if !w.Works() {
				t.Error("it can be executed")
			}
			if got := w.For(tt.image); (got == path) != tt.use || (got == "") == tt.use {
				t.Errorf("the job is started by %q", got)
			}
			// What a job says of its wrapper counts if it was started by it.
			must(t, o.Job.Sandbox.WriteFile(job.WrapperErrorFile, []byte("no\nscratch \xff\n"), 0o600))
			err := w.Failure()
			if !tt.use && err != nil {
				t.Errorf("the job was not started by it: %v", err)
			}
			if tt.use && (err == nil || err.Error() != "The job wrapper failed to execute the job: no|scratch ?" || failure.Of(err).Code != shadow.HoldUnspecified) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestNoJobWrapper: most sites have none, and one that works says nothing.
func TestNoJobWrapper(t *testing.T) {
	o, _ := site(t, nil, "")
	var none hooks.Wrapper
	must(t, none.Bring(o))
	if none.Works() || none.For(false) != "" || none.Failure() != nil {
		t.Error("there is one")
	}
	o, _ = site(t, map[string]string{"USER_JOB_WRAPPER": hostprogtest.Script(t, "")}, "")
	var good hooks.Wrapper
	must(t, good.Bring(o))
	if good.For(false) == "" || good.Failure() != nil {
		t.Errorf("%q, %v", good.For(false), good.Failure())
	}
	// A directory in the place of what it says cannot be read, and counts all the same.
	must(t, os.Mkdir(filepath.Join(o.Job.Sandbox.Scratch(), job.WrapperErrorFile), 0o700))
	if err := good.Failure(); err == nil {
		t.Error("what it says cannot be read, and is forgotten")
	}
}

// TestJobWrapperIsBrought: where the job has another file system, the program alone is
// copied beside the sandbox, where the payload can read it and not write to it.
func TestJobWrapperIsBrought(t *testing.T) {
	for name, tt := range map[string]struct {
		nested, file, want string
	}{
		"flat":              {"false", "start", ".condor_job_wrapper"},
		"nested":            {"true", "start", "start"},
		"nested, our names": {"true", "scratch", ".condor_job_wrapper"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(filepath.Dir(hostprogtest.Script(t, "")), tt.file)
			must(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
			o, _ := site(t, map[string]string{"USER_JOB_WRAPPER": path, "STARTER_NESTED_SCRATCH": tt.nested}, "")
			o.Settings.Backend = settings.BackendPod
			var w hooks.Wrapper
			must(t, w.Bring(o))
			got := w.For(false)
			if filepath.Base(got) != tt.want || got == path {
				t.Errorf("the job is started by %q, want a %s", got, tt.want)
			}
			if st, err := os.Stat(got); err != nil || st.Mode().Perm() != 0o555 || st.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) {
				t.Errorf("%v, %v", st, err)
			}
		})
	}
}

// TestJobWrapperIsBroken: a site whose wrapper cannot be used takes no jobs.
func TestJobWrapperIsBroken(t *testing.T) {
	dir := t.TempDir()
	plain, large := filepath.Join(dir, "plain"), filepath.Join(dir, "large")
	must(t, os.WriteFile(plain, nil, 0o644))
	must(t, os.WriteFile(large, nil, 0o755))
	must(t, os.Truncate(large, 16<<20+1))
	for path, words := range map[string]string{
		filepath.Join(dir, "none"): "no such file", plain: "is not an executable file", dir: "is not an executable file", large: "has more than 16777216 bytes",
	} {
		o, _ := site(t, map[string]string{"USER_JOB_WRAPPER": path}, "")
		var w hooks.Wrapper
		err := w.Bring(o)
		if err == nil || failure.Of(err).Code != shadow.VacateJobNotStarted || !strings.Contains(err.Error(), "cannot run its USER_JOB_WRAPPER") || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", path, err, words)
		}
	}
}

// TestJobWrapperDoesNotStart in an image without a shell: the user is told what to do.
func TestJobWrapperDoesNotStart(t *testing.T) {
	var w hooks.Wrapper
	for name, want := range map[string]string{"": "in the image: No such file or directory (errno=2", "docker://alpine": "in the image docker://alpine: No such"} {
		err := w.StartFailure(&payload.StartError{Stage: payload.StageExec, Errno: syscall.ENOENT}, name)
		if f := failure.Of(err); f.Code != shadow.HoldFailedToCreateProcess || f.Subcode != int(syscall.ENOENT) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := w.StartFailure(&payload.StartError{Errno: syscall.ENOENT, Detail: "there is no /bin/sh"}, ""); !strings.Contains(err.Error(), "in the image: there is no /bin/sh (errno=2") {
		t.Errorf("%v", err)
	}
}
