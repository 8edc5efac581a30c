package hooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/rescue"
	"podstarter/starter/failure"
	"podstarter/starter/hostprog"
	"podstarter/starter/orders"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
	"podstarter/starter/steps"
)

// Options are what all programs of the site for a job work with.
type Options struct {
	Settings settings.Settings
	Programs hostprog.Job    // how they are run in the pilot container
	Job      *payloadrun.Job // whose ad prepare hooks may change
	Shadow   Shadow
	Log      *slog.Logger
}

// Shadow hears what programs say.
type Shadow interface {
	ReportError(ctx context.Context, e shadow.RemoteError) error
	EventNotification(ctx context.Context, ad *classads.Ad) (int, error)
}

// Hooks are the hooks of a job's keyword (StarterHookMgr.cpp). Its methods are for one
// goroutine at a time. The zero value has none.
type Hooks struct {
	Options
	hooks  job.Hooks
	update updateRun // the last UPDATE_JOB_INFO hook
	exit   sync.Once // that hook runs once
}

// updateRun is a run of the UPDATE_JOB_INFO hook, beside whatever else goes on. The zero
// value is none.
type updateRun struct {
	ended <-chan struct{} // closed when the hook has ended
	stop  context.CancelFunc
}

// endsWithin waits for its end, and says whether it came.
func (r updateRun) endsWithin(limit time.Duration) bool {
	if r.ended == nil {
		return true
	}
	select {
	case <-r.ended:
		return true
	case <-time.After(limit):
		return false
	}
}

// Open finds the hooks of the job.
func (h *Hooks) Open(o Options) error {
	h.Options = o
	var err error
	if h.hooks, err = job.ReadHooks(o.Job.Ad, o.Settings.Config); err != nil {
		// As stock: no job runs without its hooks.
		return failure.New(shadow.VacateStarterError, 0, fmt.Errorf("the hooks of keyword %q cannot be used: %w", h.hooks.Keyword, err))
	}
	if h.hooks.Keyword != "" {
		if err := o.Programs.Host.Confinable(); err != nil {
			return failure.New(shadow.VacateStarterError, 0, fmt.Errorf("the hooks of keyword %q cannot be used: %w", h.hooks.Keyword, err))
		}
		h.Log.Info("Hooks of keyword " + h.hooks.Keyword + ", by " + h.hooks.Why)
	}
	return nil
}

// program is a hook as it is run: in the pilot container, as the payload's user, in the
// sandbox, with the starter's environment and what a job is told of its place
// (StarterHookMgr.cpp). The payload cannot look into it: no payload process is alive while
// a prepare or exit hook runs, and hooks are in a group that no payload is in. Where that
// user is the pilot's own, it is confined.
func (h *Hooks) program(hook job.Hook, path string, about *classads.Ad, args ...string) (hostprog.Program, error) {
	env, err := h.Job.Published()
	p := hostprog.Program{
		Path: path, Args: args, Env: env, Dir: h.Job.Sandbox.Scratch(),
		Stdin: []byte(about.Public().FormatOld()),
		As:    h.Programs.User(), Limit: h.hooks.Timeout(hook),
	}
	if err == nil {
		err = h.Programs.Confine(&p)
	}
	return p, err
}

// Use says how programs are run once there is a sandbox.
func (h *Hooks) Use(p hostprog.Job) { h.Programs = p }

// Has says whether the job has such a hook.
func (h *Hooks) Has(hook job.Hook) bool {
	_, ok := h.hooks.Path(hook)
	return ok
}

// Prepare runs one of the two hooks that may change the job before it runs.
func (h *Hooks) Prepare(ctx context.Context, hook job.Hook) error {
	path, ok := h.hooks.Path(hook)
	if !ok {
		return nil
	}
	return steps.Run(ctx, h.Log, "hook", func(ctx context.Context) error { return h.prepare(ctx, hook, path) })
}

func (h *Hooks) prepare(ctx context.Context, hook job.Hook, path string) error {
	p, err := h.program(hook, path, h.Job.Ad, h.hooks.Args()...)
	if err != nil {
		return err
	}
	h.Log.Info(fmt.Sprintf("%s (%s) invoked.", hook, path))
	o, err := p.Run(ctx, false)
	switch {
	case errors.Is(err, hostprog.ErrNotRun):
		return failure.New(shadow.HoldHookPrepareJobFailure, 0, fmt.Errorf("failed to execute %s (%s): %w", hook, path, err))
	case err != nil:
		return err
	case o.Late:
		return failure.New(shadow.HoldUnspecified, 0, fmt.Errorf("%s (%s) failed (it took longer than %s): <no message>", hook, filepath.Base(path), p.Limit))
	}
	h.logErrors(string(hook), o)
	answer := job.ReadHookAnswer(hook, path, o.Status, o.Stdout)
	if answer.Ignored != nil || o.Cut {
		h.Log.Warn(fmt.Sprintf("Some of what %s wrote is ignored", hook), "error", answer.Ignored, "cut", o.Cut)
	}
	if answer.Failed() {
		return failure.New(answer.Code(shadow.HoldHookPrepareJobFailure), answer.Status, errors.New(answer.Message))
	}
	if answer.Message != "" {
		if err := h.Shadow.ReportError(context.WithoutCancel(ctx), shadow.RemoteError{Message: answer.Message}); err != nil {
			h.Log.Warn("What the hook said did not reach the job's event log", "error", err, "message", answer.Message)
		}
	}
	h.Job.Ad.Update(answer.Update)
	h.Log.Info(fmt.Sprintf("%s %s", hook, o.Describe()), "attributes", answer.Update.Len())
	return nil
}

// logErrors puts what a program wrote to its standard error into the log, for
// the site's administrator.
func (h *Hooks) logErrors(name string, o hostprog.Outcome) {
	if text := hostprog.Excerpt(o.Stderr); text != "" {
		h.Log.Info(fmt.Sprintf("%s wrote to its standard error: %s", name, text))
	}
}

// Update runs the hook that hears of a running job. Nobody waits for the hook;
// while one runs, the next is left out. Calls must not overlap.
func (h *Hooks) Update(ctx context.Context, update *classads.Ad) {
	path, ok := h.hooks.Path(job.HookUpdateJobInfo)
	if !ok {
		return
	}
	if h.update.ended != nil {
		select {
		case <-h.update.ended:
		default:
			h.Log.Warn("The last UPDATE_JOB_INFO hook has not ended, the next one is left out")
			return
		}
	}
	about := h.Job.Ad.Clone()
	about.Update(update)
	p, err := h.program(job.HookUpdateJobInfo, path, about)
	if err != nil {
		h.Log.Warn("The UPDATE_JOB_INFO hook cannot be run", "error", err)
		return
	}
	ended := make(chan struct{})
	ctx, stop := context.WithCancel(ctx)
	h.update = updateRun{ended: ended, stop: stop}
	h.Log.Info(fmt.Sprintf("HOOK_%s (%s) invoked.", job.HookUpdateJobInfo, path))
	rescue.Go(func() {
		defer close(ended)
		defer stop()
		if _, err := p.Run(ctx, false); err != nil {
			h.Log.Warn("The UPDATE_JOB_INFO hook failed", "error", err)
		}
	})
}

// lastUpdateTime is how long the killing of what the job has left waits for the
// hook that hears of the last update: the hook looks like a process of the job. A hook
// that is killed has as long to end.
const lastUpdateTime = 5 * time.Second

// LastUpdate runs the hook for the update at the moment of the job's end
// (os_proc.cpp:JobReaper).
func (h *Hooks) LastUpdate(ctx context.Context, update *classads.Ad) {
	h.Update(ctx, update)
	if !h.update.endsWithin(lastUpdateTime) {
		h.Log.Warn("The UPDATE_JOB_INFO hook takes long and is killed before what the job has left")
		h.EndUpdate()
	}
}

// EndUpdate kills the hook for updates if one runs, and returns when it has ended: it
// must not outlive the sandbox.
func (h *Hooks) EndUpdate() {
	if h.update.ended == nil {
		return
	}
	h.update.stop()
	if !h.update.endsWithin(lastUpdateTime) {
		h.Log.Warn("The UPDATE_JOB_INFO hook cannot be killed; it hangs in the kernel, perhaps on a file system that does not answer")
	}
}

// Exit runs the hook that hears of the job's end, once, before its output is
// transferred, and waits for it, up to its limit. about says how the job ended; reason
// is one of the words of [Reason].
func (h *Hooks) Exit(ctx context.Context, about *classads.Ad, reason string) {
	if path, ok := h.hooks.Path(job.HookJobExit); ok {
		h.exit.Do(func() { h.runExit(ctx, path, about, reason) })
	}
}

func (h *Hooks) runExit(ctx context.Context, path string, end *classads.Ad, reason string) {
	about := h.Job.Ad.Clone()
	about.Update(end)
	p, err := h.program(job.HookJobExit, path, about, reason)
	if err == nil {
		h.Log.Info(fmt.Sprintf("HOOK_%s (%s) invoked with reason: %q", job.HookJobExit, path, reason))
		var o hostprog.Outcome
		if o, err = p.Run(ctx, false); err == nil {
			h.logErrors(string(job.HookJobExit), o)
			h.Log.Info(fmt.Sprintf("%s %s", job.HookJobExit, o.Describe()))
		}
	}
	if err != nil {
		h.Log.Error("The JOB_EXIT hook failed", "error", err)
	}
}

// Reason is what the JOB_EXIT hook is told
// (job_info_communicator.cpp:getExitReasonString).
func Reason(e *orders.Demand) string {
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
