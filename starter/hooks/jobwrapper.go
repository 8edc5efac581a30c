package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// Wrapper is the site's USER_JOB_WRAPPER for one job. The zero value is none.
type Wrapper struct {
	Options
	path string // where the job runs; empty for none
	use  bool   // this job is started by it
}

const (
	// maxJobWrapper bounds the file of a USER_JOB_WRAPPER, in bytes.
	maxJobWrapper = 16 << 20
	// maxWrapperError bounds what a wrapper may say of its failure, in bytes.
	maxWrapperError = 4 << 10
)

// For answers with the path of USER_JOB_WRAPPER where the job runs; empty if the site has
// none for this job. image says whether the job has an image of its own.
func (w *Wrapper) For(image bool) string {
	if w.path == "" {
		return ""
	}
	if w.Job.FromImage() || image {
		wrap, err := w.Settings.Config.EvalBool(settings.KnobWrapImages.Name, true, w.Job.Machine, w.Job.Ad)
		if err != nil {
			w.Log.Warn("A knob about the job wrapper is not understood, its default holds", "error", err)
		}
		if !wrap {
			return ""
		}
	}
	w.use = true
	return w.path
}

// Bring copies USER_JOB_WRAPPER to where the job runs. The stock starter runs
// it from the execution point's own file system; the payload container has
// another. So the program is copied to a place that the payload may read but
// not write to, and before the input, so that it does not count as output.
func (w *Wrapper) Bring(o Options) error {
	w.Options = o
	if !w.Settings.Condor.JobWrapper.Set {
		return nil
	}
	path := w.Settings.Condor.JobWrapper.Value
	broken := func(err error) error {
		return failure.New(shadow.VacateJobNotStarted, 0, fmt.Errorf("this execution point cannot run its USER_JOB_WRAPPER: %w", err))
	}
	if st, err := os.Stat(path); err != nil {
		return broken(err)
	} else if !st.Mode().IsRegular() || st.Mode().Perm()&0o111 == 0 {
		return broken(fmt.Errorf("%s is not an executable file", path))
	} else if st.Size() > maxJobWrapper {
		return broken(fmt.Errorf("%s has more than %d bytes", path, maxJobWrapper))
	}
	if !w.Settings.InPod() {
		w.path = path // the same file system
		return nil
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return broken(err)
	}
	name := filepath.Base(path)
	if !w.Settings.Condor.NestedScratch || name == "htcondor" || name == "user" || name == "scratch" {
		name = ".condor_job_wrapper" // no name that the job knows
	}
	if w.path, err = w.Job.Sandbox.WriteTopFile(name, program, 0o555); err != nil {
		return broken(err)
	}
	return nil
}

// Works says whether the environment names the file for the wrapper's failure
// (starter.cpp:PublishToEnv).
func (w *Wrapper) Works() bool {
	wrapper := w.Settings.Condor.JobWrapper
	return wrapper.Set && unix.Access(wrapper.Value, unix.X_OK) == nil
}

// Failure is the error of a job that the wrapper reports it could not run: the
// site's trouble, not the job's (user_proc.cpp:JobReaper).
func (w *Wrapper) Failure() error {
	if !w.use {
		return nil
	}
	text, err := w.Job.Sandbox.ReadFile(job.WrapperErrorFile, maxWrapperError)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		w.Log.Warn("What the job wrapper says of its failure cannot be read", "error", err)
	}
	words := strings.ReplaceAll(strings.TrimSpace(strings.ToValidUTF8(string(text), "?")), "\n", "|")
	return failure.New(shadow.HoldUnspecified, 0, fmt.Errorf("The job wrapper failed to execute the job: %s", words)) //nolint:staticcheck // stock's sentence
}

// StartFailure is the hold of a job whose wrapper cannot be executed in its image.
// The user can choose another image; the message tells the site as well.
func (w *Wrapper) StartFailure(s *payload.StartError, name string) error {
	image := "the image"
	if name != "" {
		image += " " + name
	}
	why := s.Detail
	if why == "" {
		why = job.Strerror(s.Errno)
	}
	return failure.New(shadow.HoldFailedToCreateProcess, int(s.Errno), fmt.Errorf( //nolint:staticcheck // begins as stock's does
		"Failed to execute this execution point's job wrapper (USER_JOB_WRAPPER) in %s: %s (errno=%d: '%s'); every job here is started by it, so choose an image that can run it, usually one with a shell",
		image, why, int(s.Errno), job.Strerror(s.Errno)))
}
