package failure

import (
	"errors"
	"fmt"
	"syscall"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/sandbox/filetransfer"
)

// New says what err means to the job; its text is what the user reads.
func New(code, subcode int, err error) error {
	return &job.Failure{Code: code, Subcode: subcode, Err: err}
}

// Of finds in err what it means to the job. An error that nobody
// classified is the starter's own: the job is not to blame and may run
// elsewhere.
func Of(err error) *job.Failure {
	if f := (*job.Failure)(nil); errors.As(err, &f) {
		return f
	}
	return &job.Failure{Code: shadow.VacateStarterError, Err: err}
}

// OfBinding turns a backend's verdict into what happens to the job: what the
// user must fix is a hold with the code that the stock starter gives an image
// that docker cannot pull; what the site must fix gives the job back.
func OfBinding(err error) error {
	if errors.As(err, new(*job.Failure)) {
		return err // of the image's files
	}
	v := (*payload.Verdict)(nil)
	if !errors.As(err, &v) || v.Blame != payload.User {
		return New(shadow.VacateContainerError, 0, err)
	}
	return New(shadow.HoldInvalidDockerImage, v.Subcode, err)
}

// OfStart turns the wrapper's account of a payload that could not be
// started into HTCondor's hold codes: 6 for the program, 7 and 8 for its
// files, each with the errno as subcode, and stock's sentences
// (os_proc.cpp:StartJob).
func OfStart(err error, cmd job.Command) error {
	s := (*payload.StartError)(nil)
	if !errors.As(err, &s) {
		return New(shadow.VacateContainerError, 0, fmt.Errorf("failed to start the job in its container: %w", err))
	}
	open := func(code int, as string) error {
		return New(code, int(s.Errno), errors.New(job.OpenFailure(s.Path, as, s.Errno)))
	}
	if s.Errno == syscall.EAGAIN && (s.Stage == payload.StageFork || s.Stage == payload.StageExec) {
		return New(shadow.VacateContainerError, 0, fmt.Errorf("this pod has no room for another process: %w", err))
	}
	switch s.Stage {
	case payload.StageLink:
		return New(shadow.HoldFailedToCreateProcess, int(s.Errno), fmt.Errorf(
			"%s cannot be another name for a place in this container (container_target_dir, mount_under_scratch, or a bind path): %s; choose a path that the image does not have, or leave it out", s.Path, s.Detail))
	case payload.StageScratch:
		return New(shadow.HoldFailedToCreateProcess, int(s.Errno), fmt.Errorf(
			"%s cannot take the place of a directory of this machine: %s; it must be a directory of the job, and not reached by symbolic links", s.Path, s.Detail))
	case payload.StageMount:
		return New(shadow.VacateScratchDirError, 0, fmt.Errorf(
			"this machine cannot give the job a directory of its own in place of %s (MOUNT_UNDER_SCRATCH, MOUNT_PRIVATE_DEV_SHM): %s", s.Path, s.Detail))
	case payload.StageStdin:
		return open(shadow.HoldUnableToOpenInput, "standard input")
	case payload.StageStdout:
		return open(shadow.HoldUnableToOpenOutput, "standard output")
	case payload.StageStderr:
		return open(shadow.HoldUnableToOpenOutput, "standard error")
	}
	return New(shadow.HoldFailedToCreateProcess, int(s.Errno), errors.New(job.ExecFailure(cmd, s.Errno, startCause(s), s.Detail)))
}

// StartLine is what the log says of it, as stock's does; empty if err is not about a
// program that could not be started.
func StartLine(err error, cmd job.Command) string {
	s := (*payload.StartError)(nil)
	if !errors.As(err, &s) || s.Stage != payload.StageExec && s.Stage != payload.StageChdir {
		return ""
	}
	return job.LineNotStarted(cmd, s.Errno, startCause(s), s.Detail)
}

// startCause is stock's name of what failed, if it has one beside the errno.
func startCause(s *payload.StartError) string {
	switch {
	case s.Stage == payload.StageChdir:
		return job.BadDirectory(s.Path)
	case s.Interpreter != "":
		return job.BadInterpreter(s.Interpreter)
	}
	return ""
}

// OfTransfer is what a failed transfer means to the job: one that may
// work another time gives the job back to the queue, since the access point
// would retry it elsewhere.
func OfTransfer(err error, prefix string) error {
	t := (*filetransfer.Error)(nil)
	if !errors.As(err, &t) {
		return err
	}
	f := &job.Failure{Code: t.Code, Subcode: t.Subcode, Err: errors.New(prefix + t.Text)}
	if t.TryAgain && !shadow.ShouldVacate(f.Code, f.Subcode) {
		f.Subcode = shadow.SubcodeRequeue
	}
	return f
}

// Blame says what a failed activation means to the pod. payload.Unknown stands
// for the job's own end, orders from outside, and what a job can cause itself
// once it runs.
func Blame(err error, ran bool) (payload.Blame, string) {
	if v := (*payload.Verdict)(nil); errors.As(err, &v) {
		switch {
		case v.Blame == payload.Pilot:
			return payload.Pilot, v.Error()
		case v.Blame == payload.User, ran:
			return payload.Unknown, ""
		default:
			return payload.Site, v.Error()
		}
	}
	f := Of(err)
	if f.Code == shadow.VacateScratchDirError && !ran {
		// If this job gets no sandbox, the next gets none either.
		return payload.Site, f.Error()
	}
	if r := (*payload.RequestError)(nil); errors.As(err, &r) && r.Code == payload.CodeNotEmpty && !ran {
		// What an earlier job left and could not be removed is in the way of the next
		// as well.
		return payload.Site, f.Error()
	}
	return payload.Unknown, ""
}
