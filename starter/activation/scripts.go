package activation

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/orders"
	"podstarter/starter/settings"
)

// scripts is what is known of the programs that the job has run before and after
// its own (PreCmd, PostCmd). They run where the job does: in the payload
// container, as its user, one after the other.
type scripts struct {
	refused bool
	pre     *job.Script // only while its failure is told
	post    *job.Script
}

// publish tells how they ended. As with stock, a PreCmd is heard of only if it
// has failed (starter.cpp:Reaper).
func (s scripts) publish(ad *classads.Ad) {
	for _, end := range []*job.Script{s.pre, s.post} {
		if end != nil {
			job.PublishScript(ad, *end)
		}
	}
}

// preScript runs PreCmd, if the job has one.
func (a *activation) preScript(ctx context.Context) error {
	end, err := a.runScript(ctx, job.PreScript)
	if end == nil || err != nil {
		return err
	}
	if job.ScriptFailed(a.ad, job.PreScript, end.Status) {
		a.scripts.pre = end
		return a.scriptFailed(ctx, shadow.HoldPreScriptFailed, "Pre script failed.")
	}
	return nil
}

// postScript runs PostCmd, if the job has one. It comes after every end of the
// job, but for one that allows no delay.
func (a *activation) postScript(ctx context.Context) error {
	if !a.orders.Allows(orders.Hard) {
		return nil
	}
	hasty, release := a.orders.UntilHard(ctx)
	defer release()
	end, err := a.runScript(hasty, job.PostScript)
	switch {
	case err != nil && !a.orders.Allows(orders.Hard):
		a.log.Warn("The job's PostCmd is cut short", "error", err)
		return nil
	case end == nil || err != nil:
		return err
	}
	a.scripts.post = end
	if job.ScriptFailed(a.ad, job.PostScript, end.Status) {
		return a.scriptFailed(ctx, shadow.HoldPostScriptFailed, "Post script failed.")
	}
	return nil
}

// scriptFailed tells of a script's end and puts the job on hold.
func (a *activation) scriptFailed(ctx context.Context, code int, text string) error {
	ad := classads.NewAd()
	a.scripts.publish(ad)
	a.reports.Tell(ctx, ad)
	if a.payload != nil && a.payload.exit != nil {
		a.reports.TellStartd(ctx, a.exitAd(ctx)) // the job itself did end
	}
	return failure.New(code, 0, errors.New(text))
}

// runScript runs PreCmd or PostCmd to its end; nil if there is none.
func (a *activation) runScript(ctx context.Context, which string) (*job.Script, error) {
	place := a.place()
	cmd, ok, err := job.ScriptOf(a.ad, which, place)
	if !ok || a.scripts.refused {
		return nil, nil
	}
	bad := func(err error) (*job.Script, error) {
		return nil, failure.New(shadow.HoldFailedToCreateProcess, 0, err)
	}
	if err != nil {
		return bad(err)
	}
	allowed, err := job.ScriptsAllowed(a.ad, a.machine, a.cfg)
	if err != nil || !allowed {
		a.scripts.refused = true
		a.log.Warn("STARTER_ALLOW_JOB_PRE_AND_POST_CMD evaluated to false, PreCmd and PostCmd will be ignored", "error", err)
		return nil, nil
	}
	env, err := job.ScriptEnvironment(a.ad, which, a.cfg, a.surroundings(place))
	if err != nil {
		return bad(err)
	}
	target, err := a.targetDir()
	if err != nil {
		return bad(err)
	}
	uid, gid := a.lease.Owner()
	a.log.Info("About to exec " + which + " script: " + cmd.Path + " " + job.JoinV2(cmd.Args))
	exit, pid, err := a.runInside(ctx, payload.Spec{
		Activation: a.name + "." + which,
		UID:        uid, GID: gid,
		Path: cmd.Path, Args: append([]string{job.ScriptArgv0(which)}, cmd.Args...),
		Link: target.at, LinkTo: target.to,
		Env: target.retarget(env.Strings(), place.Iwd), ImageEnv: a.set.Backend == settings.BackendPod, HideEnv: a.container.PlatformEnv(),
		Dir: place.Iwd, Umask: Umask, Nice: job.ScriptNice,
		Limits: append([]payload.Limit{{Resource: "core", Soft: a.coreLimit(), Hard: a.coreLimit()}}, a.taskLimit()...), MaxTasks: a.set.MaxTasks,
	})
	if s := (*payload.StartError)(nil); errors.As(err, &s) {
		return nil, failure.New(shadow.HoldFailedToCreateProcess, int(s.Errno), errors.New(job.ScriptExecFailure(cmd, s.Errno, s.Detail)))
	}
	if err != nil {
		return nil, err
	}
	end := &job.Script{Which: which, PID: pid, Started: exit.Started, Ended: exit.Ended, Status: syscall.WaitStatus(exit.WaitStatus)}
	a.log.Info(job.LineExited(pid, end.Status))
	return end, a.wrapperFailure()
}

// coreLimit is how large a core file may be (script_proc.cpp:StartJob).
func (a *activation) coreLimit() uint64 {
	if n := a.ad.IntOr("CoreSize", 0); n >= 0 {
		return uint64(n)
	}
	return payload.Unlimited
}

// runInside runs a program in the payload container to its end. If ctx ends first,
// it is killed with all that it started.
func (a *activation) runInside(ctx context.Context, spec payload.Spec) (payload.Exit, int, error) {
	client := a.container.Client()
	started, err := a.startInside(ctx, spec)
	if err != nil {
		return payload.Exit{}, 0, a.insideFailure(ctx, err)
	}
	exit, err := client.Wait(ctx)
	switch {
	case err != nil:
		if sweepErr := client.Sweep(context.WithoutCancel(ctx)); sweepErr != nil && ctx.Err() != nil {
			a.log.Error("Failed to kill what ran in the payload container", "error", sweepErr)
		}
		return exit, started.PID, a.insideFailure(ctx, err)
	case exit.Killed == payload.KilledTasks:
		return exit, started.PID, a.tooManyTasks()
	case exit.Killed != "":
		return exit, started.PID, a.lostContainer(fmt.Errorf("the wrapper killed it: %s", exit.Killed))
	}
	return exit, started.PID, nil
}

// insideFailure is what it means that a program could not be run to its end.
func (a *activation) insideFailure(ctx context.Context, err error) error {
	switch {
	case errors.As(err, new(*payload.StartError)):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(*payload.RequestError)):
		return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("failed to start a program in the job's container: %w", err))
	default:
		return a.lostContainer(a.whyLost(ctx, err))
	}
}
