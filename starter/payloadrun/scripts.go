package payloadrun

import (
	"context"
	"errors"
	"slices"
	"syscall"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
)

// Scripts are the programs that the job has run before and after its own (PreCmd,
// PostCmd). They run where the job does: in the payload container, as its user, one
// after the other.
type Scripts struct {
	Job *Job
	// WrapperFailure tells whether the site's job wrapper has failed.
	WrapperFailure func() error

	permission permission
	failedPre  *job.Script // a PreCmd that has failed
	post       *job.Script
}

// permission is the site's (STARTER_ALLOW_JOB_PRE_AND_POST_CMD); it is read before
// the first script.
type permission int

const (
	unasked permission = iota
	granted
	refused
)

// Publish tells how they ended. As with stock, a PreCmd is reported only if it has
// failed (starter.cpp:Reaper).
func (s *Scripts) Publish(ad *classads.Ad) {
	for _, end := range []*job.Script{s.failedPre, s.post} {
		if end != nil {
			job.PublishScript(ad, *end)
		}
	}
}

// Run runs PreCmd or PostCmd to its end. ran says whether there is one; good, whether it
// ended as the job wants.
func (s *Scripts) Run(ctx context.Context, c *Container, which string) (ran, good bool, err error) {
	end, err := s.run(ctx, c, which)
	if end == nil || err != nil {
		return false, false, err
	}
	good = !job.ScriptFailed(s.Job.Ad, which, end.Status)
	switch {
	case which == job.PostScript:
		s.post = end
	case !good:
		s.failedPre = end
	}
	return true, good, nil
}

func (s *Scripts) run(ctx context.Context, c *Container, which string) (*job.Script, error) {
	j := s.Job
	place := j.Place()
	cmd, ok, err := job.ScriptOf(j.Ad, which, place)
	if !ok || s.permission == refused {
		return nil, nil
	}
	bad := func(err error) (*job.Script, error) {
		return nil, failure.New(shadow.HoldFailedToCreateProcess, 0, err)
	}
	if err != nil {
		return bad(err)
	}
	allowed, err := job.ScriptsAllowed(j.Ad, j.Machine, j.Settings.Config)
	if err != nil || !allowed {
		s.permission = refused
		j.Log.Warn("STARTER_ALLOW_JOB_PRE_AND_POST_CMD evaluated to false, PreCmd and PostCmd will be ignored", "error", err)
		return nil, nil
	}
	s.permission = granted
	env, err := job.ScriptEnvironment(j.Ad, which, j.Settings.Config, j.Surroundings())
	if err != nil {
		return bad(err)
	}
	target, err := j.targetDir()
	if err != nil {
		return bad(err)
	}
	links, err := j.links(target)
	if err != nil {
		return bad(err)
	}
	j.Log.Info("About to exec " + which + " script: " + cmd.Path + " " + job.JoinV2(cmd.Args))
	exit, pid, err := c.Run(ctx, payload.Spec{
		Activation: j.Name + "." + which,
		UID:        j.UID, GID: j.GID,
		Path: cmd.Path, Args: append([]string{job.ScriptArgv0(which)}, cmd.Args...),
		Links: links,
		Env:   j.OverImage(target.retarget(env.Strings(), place.Iwd)), ImageEnv: j.Settings.InPod(), HideEnv: c.PlatformEnv(),
		Dir: place.Iwd, Umask: Umask, Nice: job.ScriptNice,
		Limits: append([]payload.Limit{{Resource: "core", Soft: j.coreLimit(), Hard: j.coreLimit()}}, j.taskLimit()...), MaxTasks: j.Settings.MaxTasks,
	})
	if f := (*payload.StartError)(nil); errors.As(err, &f) && slices.Contains([]string{payload.StageLink, payload.StageScratch, payload.StageMount}, f.Stage) {
		return nil, failure.OfStart(err, cmd)
	} else if f != nil {
		return nil, failure.New(shadow.HoldFailedToCreateProcess, int(f.Errno), errors.New(job.ScriptExecFailure(cmd, f.Errno, f.Detail)))
	}
	if err != nil {
		return nil, err
	}
	end := &job.Script{Which: which, PID: pid, Started: exit.Started, Ended: exit.Ended, Status: syscall.WaitStatus(exit.WaitStatus)}
	j.Log.Info(job.LineExited(pid, end.Status))
	return end, s.WrapperFailure()
}
