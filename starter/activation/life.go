package activation

import (
	"context"
	"os"

	"podstarter/rescue"
	"podstarter/starter/discard"
	"podstarter/starter/endpoint"
	"podstarter/starter/steps"
)

// run lives the activation and concludes it; the result is the exit code of the process.
func (a *activation) run(ctx context.Context) int {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	endpoint.Serve(ctx, endpoint.Options{
		Inherited: a.peers.inherited, Sessions: a.peers.sessions, Version: a.opt.Version, Settings: a.opt.Settings, Orders: a.orders,
		Reconnect: a.peers.side.Reconnect, Reversed: a.peers.calls.Desk.Serve, Proxy: a.proxies.Command, Owner: a.desk.Serve, Log: a.log,
	})
	rescue.Go(func() { a.peers.side.Keep(ctx) })
	err := a.live(ctx)
	a.desk.EndVisits()
	code := a.conclude(ctx, err)
	a.noteEnd(code)
	a.clean(ctx)
	return code
}

// live is the whole life of a job that goes well. An error ends it where it happened;
// conclude says what that means to the job.
func (a *activation) live(ctx context.Context) error {
	before, release := a.orders.UntilAny(ctx)
	defer release()
	if err := a.begin(before); err != nil {
		return err
	}
	if a.isDataSlot() {
		a.enter(keeping)
		return steps.Run(before, a.log, "keep", a.keep)
	}
	if err := steps.Run(before, a.log, "ready", a.getReady); err != nil {
		return err
	}
	a.enter(ready)
	if err := a.deferStart(before); err != nil {
		return err
	}
	if err := a.runToEnd(before, ctx); err != nil {
		return err
	}
	return steps.Run(ctx, a.log, "finish", a.finish)
}

// begin is what comes before any file.
func (a *activation) begin(ctx context.Context) error {
	for _, step := range []struct {
		name string
		run  func(context.Context) error
		to   phase
	}{
		{"register", a.register, registered}, // which job it is, and on which slot
		{"prepare", a.prepare, prepared},     // a payload slot and a sandbox
	} {
		if err := steps.Run(ctx, a.log, step.name, step.run); err != nil {
			return err
		}
		a.enter(step.to)
	}
	return nil
}

// runToEnd runs the payload until it has ended for good. An order of any kind cuts short
// what comes before a start.
func (a *activation) runToEnd(before, ctx context.Context) error {
	defer a.desk.Finish()
	for {
		if err := steps.Run(before, a.log, "start", a.start); err != nil {
			return err
		}
		a.enter(running)
		if err := a.watch(ctx); err != nil {
			return err
		}
		a.enter(exited)
		if again, err := a.checkpointed(ctx); err != nil || !again {
			return err
		}
		a.enter(ready)
	}
}

// clean removes what the activation leaves on the machine, whatever happened.
func (a *activation) clean(ctx context.Context) {
	a.creds.Stop()
	a.io.Close()
	a.work.streams.Close()
	a.site.hooks.EndUpdate()
	if err := a.work.container.Sweep(ctx); err != nil {
		// The wrapper kills what is left when the slot is released.
		a.log.Warn("Failed to sweep the payload slot", "error", err)
	}
	a.site.places.TearDown(ctx)
	a.work.container.Close()
	a.peers.shadow.Close()
	if box := a.job.Sandbox; box != nil {
		discard.Discard(ctx, box, discard.Knobs(a.opt.Settings.Condor.Sandbox), a.log)
	}
	if a.lease != nil {
		if err := a.removeTemporary(ctx); err != nil {
			a.log.Error("Failed to tidy up after programs of the job; the next job's starter will try again", "error", err)
		}
		if err := a.lease.Release(ctx); err != nil {
			a.log.Error("Failed to release the payload slot", "error", err)
		}
	}
	a.enter(gone)
	a.log.Info("All jobs have exited... starter exiting")
}

// removeTemporary removes what programs that ran for jobs of this user have left in the
// pilot container, or on the machine.
func (a *activation) removeTemporary(ctx context.Context) error {
	if !leftoversAreTheJobs(os.Getuid() == 0, a.opt.Settings.InPod(), a.isDataSlot()) {
		return nil
	}
	return a.opt.Host.RemoveTemporary(ctx, a.job.UID, a.log)
}

// leftoversAreTheJobs: under root, users of jobs are nobody else. Otherwise a machine's user may have other files,
// and in a pod the user of a data slot is that of the job which runs beside it.
func leftoversAreTheJobs(root, pod, dataSlot bool) bool { return root || pod && !dataSlot }
