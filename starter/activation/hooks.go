package activation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/rescue"
	"podstarter/starter/failure"
	"podstarter/starter/hostprog"
	"podstarter/starter/orders"
)

// openHooks finds the hooks of the job.
func (a *activation) openHooks() error {
	var err error
	if a.hooks, err = job.ReadHooks(a.ad, a.cfg); err != nil {
		// As stock: without its hooks the site takes no job.
		return failure.New(shadow.VacateStarterError, 0, fmt.Errorf("the hooks of keyword %q cannot be used: %w", a.hooks.Keyword, err))
	}
	if a.hooks.Keyword != "" {
		if err := a.host.Confinable(); err != nil {
			return failure.New(shadow.VacateStarterError, 0, fmt.Errorf("the hooks of keyword %q cannot be used: %w", a.hooks.Keyword, err))
		}
		a.log.Info("Hooks of keyword " + a.hooks.Keyword + ", by " + a.hooks.Why)
	}
	return nil
}

// hookProgram is a hook as it is run: in the pilot container, as the payload's
// user, in the sandbox, with the starter's environment and what a job is told of its place
// (StarterHookMgr.cpp). The payload cannot look into it: no payload process is alive
// while a prepare or exit hook runs, and hooks are in a group that no payload is in.
// Where it would be the pilot's own user, it is confined.
func (a *activation) hookProgram(hook job.Hook, path string, about *classads.Ad, args ...string) (hostprog.Program, error) {
	env, err := a.siteEnvironment()
	p := hostprog.Program{
		Path: path, Args: args, Env: env, Dir: a.sandbox.Scratch(),
		Stdin: []byte(public(about).FormatOld()),
		As:    a.programs().User(), Limit: a.hooks.Timeout(hook),
	}
	if err == nil {
		err = a.programs().Confine(&p)
	}
	return p, err
}

// siteEnvironment is what programs of the site are told of the job's place, over
// the starter's own environment.
func (a *activation) siteEnvironment() ([]string, error) {
	place := a.place()
	env := job.NewEnv()
	if err := job.Publish(env, a.ad, a.cfg, a.surroundings(place)); err != nil {
		return nil, fmt.Errorf("build the environment of a program of the site: %w", err)
	}
	return append(append([]string(nil), a.environ...), env.Strings()...), nil
}

// prepareHook runs one of the two hooks that may change the job before it runs.
func (a *activation) prepareHook(ctx context.Context, hook job.Hook) error {
	path, ok := a.hooks.Path(hook)
	if !ok {
		return nil
	}
	return phase(ctx, a.log, "hook", func(ctx context.Context) error { return a.runPrepareHook(ctx, hook, path) })
}

func (a *activation) runPrepareHook(ctx context.Context, hook job.Hook, path string) error {
	p, err := a.hookProgram(hook, path, a.ad, a.hooks.Args()...)
	if err != nil {
		return err
	}
	a.log.Info(fmt.Sprintf("%s (%s) invoked.", hook, path))
	o, err := p.Run(ctx, false)
	switch {
	case errors.Is(err, hostprog.ErrNotRun):
		return failure.New(shadow.HoldHookPrepareJobFailure, 0, fmt.Errorf("failed to execute %s (%s): %w", hook, path, err))
	case err != nil:
		return err
	case o.Late:
		return failure.New(shadow.HoldUnspecified, 0, fmt.Errorf("%s (%s) failed (it took longer than %s): <no message>", hook, filepath.Base(path), p.Limit))
	}
	a.logErrors(string(hook), o)
	answer := job.ReadHookAnswer(hook, path, o.Status, o.Stdout)
	if answer.Ignored != nil || o.Cut {
		a.log.Warn(fmt.Sprintf("Not all that %s wrote was taken", hook), "error", answer.Ignored, "cut", o.Cut)
	}
	if answer.Failed() {
		return failure.New(answer.Code(shadow.HoldHookPrepareJobFailure), answer.Status, errors.New(answer.Message))
	}
	if answer.Message != "" {
		if err := a.shadow.ReportError(context.WithoutCancel(ctx), shadow.RemoteError{Message: answer.Message}); err != nil {
			a.log.Warn("What the hook said did not reach the job's event log", "error", err, "message", answer.Message)
		}
	}
	a.ad.Update(answer.Update)
	a.log.Info(fmt.Sprintf("%s %s", hook, o.Describe()), "attributes", answer.Update.Len())
	return nil
}

// logErrors puts what a program wrote to its standard error into the log, for
// the site's administrator.
func (a *activation) logErrors(name string, o hostprog.Outcome) {
	if text := hostprog.Excerpt(o.Stderr); text != "" {
		a.log.Info(fmt.Sprintf("%s wrote to its standard error: %s", name, text))
	}
}

// updateHook runs the hook that hears of a running job. Nobody waits for it; while
// one has not ended the next is left out. It is called for one update after the
// other.
func (a *activation) updateHook(ctx context.Context, update *classads.Ad) {
	path, ok := a.hooks.Path(job.HookUpdateJobInfo)
	if !ok {
		return
	}
	if a.hookEnded != nil {
		select {
		case <-a.hookEnded:
		default:
			a.log.Warn("The last UPDATE_JOB_INFO hook has not ended, the next one is left out")
			return
		}
	}
	about := a.ad.Clone()
	about.Update(update)
	p, err := a.hookProgram(job.HookUpdateJobInfo, path, about)
	if err != nil {
		a.log.Warn("The UPDATE_JOB_INFO hook cannot be run", "error", err)
		return
	}
	ended := make(chan struct{})
	a.hookEnded = ended
	a.log.Info(fmt.Sprintf("HOOK_%s (%s) invoked.", job.HookUpdateJobInfo, path))
	rescue.Go(func() {
		defer close(ended)
		if _, err := p.Run(ctx, false); err != nil {
			a.log.Warn("The UPDATE_JOB_INFO hook failed", "error", err)
		}
	})
}

// lastUpdateTime is how long the hook that hears of the update at the job's end
// may hold up the killing of what the job has left, which it looks like.
const lastUpdateTime = 5 * time.Second

// lastUpdateHook runs the hook for the update at the moment of the job's end
// (os_proc.cpp:JobReaper).
func (a *activation) lastUpdateHook(ctx context.Context, update *classads.Ad) {
	a.updateHook(ctx, update)
	if a.hookEnded == nil {
		return
	}
	timer := time.NewTimer(lastUpdateTime)
	defer timer.Stop()
	select {
	case <-a.hookEnded:
	case <-timer.C:
		a.log.Warn("The UPDATE_JOB_INFO hook takes long and is killed with what the job has left")
	}
}

// exitHook runs the hook that hears of the job's end, once, before its output is
// transferred, and waits for it, but not for ever.
func (a *activation) exitHook(ctx context.Context) {
	path, ok := a.hooks.Path(job.HookJobExit)
	if !ok || a.exitHookRan || a.sandbox == nil {
		return
	}
	a.exitHookRan = true
	about := a.ad.Clone()
	about.Update(a.processAd(job.Exited))
	a.scripts.publish(about)
	if e := a.orders.Ended(); e != nil {
		job.PublishVacate(about, job.Vacated{Reason: e.Reason, Code: e.Code, Subcode: e.Subcode})
	}
	reason := "exit" // an order that came when the job had ended changes nothing
	if a.payload == nil || a.payload.ordered {
		reason = exitReason(a.orders.Ended())
	}
	p, err := a.hookProgram(job.HookJobExit, path, about, reason)
	if err == nil {
		a.log.Info(fmt.Sprintf("HOOK_%s (%s) invoked with reason: %q", job.HookJobExit, path, reason))
		var o hostprog.Outcome
		if o, err = p.Run(ctx, false); err == nil {
			a.logErrors(string(job.HookJobExit), o)
			a.log.Info(fmt.Sprintf("%s %s", job.HookJobExit, o.Describe()))
		}
	}
	if err != nil {
		a.log.Error("The JOB_EXIT hook failed", "error", err)
	}
}

// exitReason is what the JOB_EXIT hook is told
// (job_info_communicator.cpp:getExitReasonString).
func exitReason(e *orders.Demand) string {
	switch {
	case e == nil:
		return "exit"
	case e.Hold:
		return "hold"
	case e.Remove:
		return "remove"
	}
	return "evict"
}
