package main

import (
	"errors"
	"fmt"
	"syscall"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
)

// fail says what err means to the job; its text is what the user reads.
func fail(code, subcode int, err error) error {
	return &job.Failure{Code: code, Subcode: subcode, Err: err}
}

// asFailure finds in err what it means to the job. An error that nobody
// classified is the starter's own: the job is not to blame and may run
// elsewhere.
func asFailure(err error) *job.Failure {
	if f := (*job.Failure)(nil); errors.As(err, &f) {
		return f
	}
	return &job.Failure{Code: shadow.VacateStarterError, Err: err}
}

// bindFailure turns a backend's verdict into what happens to the job: what the
// user must fix is a hold with the code that the stock starter gives an image
// that docker cannot pull; what the site must fix gives the job back.
func bindFailure(err error) error {
	v := (*payload.Verdict)(nil)
	if !errors.As(err, &v) || v.Blame != payload.User {
		return fail(shadow.VacateContainerError, 0, err)
	}
	return fail(shadow.HoldInvalidDockerImage, v.Subcode, err)
}

// startFailure turns the wrapper's account of a payload that could not be
// started into HTCondor's hold codes: 6 for the program, 7 and 8 for its
// files, each with the errno as subcode, and stock's sentences
// (os_proc.cpp:StartJob).
func startFailure(err error, cmd job.Command) error {
	s := (*payload.StartError)(nil)
	if !errors.As(err, &s) {
		return fail(shadow.VacateContainerError, 0, fmt.Errorf("failed to start the job in its container: %w", err))
	}
	open := func(code int, as string) error {
		return fail(code, int(s.Errno), errors.New(job.OpenFailure(s.Path, as, s.Errno)))
	}
	if s.Errno == syscall.EAGAIN && (s.Stage == payload.StageFork || s.Stage == payload.StageExec) {
		return fail(shadow.VacateContainerError, 0, fmt.Errorf("this pod has no room for another process: %w", err))
	}
	switch s.Stage {
	case payload.StageLink:
		return fail(shadow.HoldFailedToCreateProcess, int(s.Errno), fmt.Errorf(
			"the job's sandbox cannot appear as %s in this container (container_target_dir): %s; choose a path that the image does not have, or leave it out", s.Path, s.Detail))
	case payload.StageStdin:
		return open(shadow.HoldUnableToOpenInput, "standard input")
	case payload.StageStdout:
		return open(shadow.HoldUnableToOpenOutput, "standard output")
	case payload.StageStderr:
		return open(shadow.HoldUnableToOpenOutput, "standard error")
	}
	return fail(shadow.HoldFailedToCreateProcess, int(s.Errno), errors.New(job.ExecFailure(cmd, s.Errno, s.Detail)))
}
