package activation

import (
	"context"
	"errors"
	"fmt"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/rescue"
	"podstarter/sandbox/filetransfer"
	"podstarter/sandbox/jobfiles"
	"podstarter/starter/failure"
	"podstarter/starter/hostprog"
	"podstarter/starter/orders"
	"podstarter/starter/payloadrun"
	"podstarter/starter/steps"
	"podstarter/starter/submitside"
	"podstarter/starter/transfer"
)

// finish does what is left between the end of the job's main process and the
// last call to the shadow. Updates carry usage and exit status, since the
// shadow expects neither in the ad of that call (jic_shadow.cpp:notifyJobExit).
func (a *activation) finish(ctx context.Context) error {
	if a.peers.reports.Held() {
		// The shadow has hung up; the hold was the last word.
		return a.finishHeld(ctx)
	}
	if !a.work.run.Ordered() {
		if err := a.job.Launched(); err != nil {
			return err
		}
	}
	if err := a.tellEnd(ctx); err != nil {
		return err
	}
	a.peers.reports.Promise(0)
	// Children that the job left behind must not write into files that are
	// being transferred.
	if err := a.work.container.Sweep(ctx); err != nil {
		return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("something of the job is left in its container: %w", err))
	}
	if err := a.work.streams.Drain(ctx, a.orders); err != nil {
		return err
	}
	if err := a.outOfMemory(); err != nil {
		return err
	}
	a.keepCore()
	if err := a.afterJob(ctx); err != nil {
		return err
	}
	a.drainProxy(ctx)
	a.enter(handing)
	return a.handOver(ctx)
}

// afterJob runs what is to run after the job and before its output is sent.
func (a *activation) afterJob(ctx context.Context) error {
	ran, err := a.postScript(ctx)
	if err != nil {
		return err
	}
	if ran { // it may have left something
		if err := a.work.container.Sweep(ctx); err != nil {
			return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("something of the job's PostCmd is left in the container: %w", err))
		}
	}
	a.exitHook(ctx)
	return nil
}

// preScript runs PreCmd, if the job has one.
func (a *activation) preScript(ctx context.Context) error {
	ran, good, err := a.work.scripts.Run(ctx, a.work.container, job.PreScript)
	if !ran || good || err != nil {
		return err
	}
	return a.scriptFailed(ctx, shadow.HoldPreScriptFailed, "Pre script failed.")
}

// postScript runs PostCmd, if the job has one. It runs after every end of the job,
// unless a demand allows no delay.
func (a *activation) postScript(ctx context.Context) (ran bool, err error) {
	if !a.orders.Allows(orders.Hard) {
		return false, nil
	}
	hasty, release := a.orders.UntilHard(ctx)
	defer release()
	ran, good, err := a.work.scripts.Run(hasty, a.work.container, job.PostScript)
	switch {
	case err != nil && !a.orders.Allows(orders.Hard):
		a.log.Warn("The job's PostCmd is cut short", "error", err)
		return false, nil
	case !ran || good || err != nil:
		return ran, err
	}
	return true, a.scriptFailed(ctx, shadow.HoldPostScriptFailed, "Post script failed.")
}

// scriptFailed reports a script's end and puts the job on hold.
func (a *activation) scriptFailed(ctx context.Context, code int, text string) error {
	ad := classads.NewAd()
	a.work.scripts.Publish(ad)
	a.peers.reports.Tell(ctx, ad)
	if a.work.run != nil && a.work.run.Exit != nil {
		a.peers.reports.TellStartd(ctx, a.account.exiting(ctx)) // the job itself did end
	}
	return failure.New(code, 0, errors.New(text))
}

// drainProxy waits until all requests of the job to its shadow are done, unless a
// demand allows no delay. No process of the job is alive.
func (a *activation) drainProxy(ctx context.Context) {
	ctx, release := a.orders.UntilHard(ctx)
	defer release()
	a.io.Finish(ctx)
}

// tellEnd tells shadow and startd that the main process has ended, once. The state in
// that update is still the one before: a shadow takes no job from Suspended to Exited
// (os_proc.cpp:JobReaper).
func (a *activation) tellEnd(ctx context.Context) error {
	if a.phase == told {
		return nil
	}
	if err := a.site.wrapper.Failure(); err != nil {
		return err
	}
	a.enter(told)
	reaped := a.account.reaped()
	a.peers.reports.Tell(ctx, reaped.Clone())
	a.site.hooks.LastUpdate(ctx, reaped)
	if err := a.peers.reports.Event(ctx, shadow.Event(shadow.EventExecutionExit)); err != nil {
		a.log.Debug("The shadow does not count the time of the job's execution", "error", err)
	}
	return nil
}

// sayExited is the last call to the shadow.
func (a *activation) sayExited(ctx context.Context) error {
	if err := a.panics.failure(); err != nil {
		return err // nobody should believe what a program that has failed says of the job
	}
	a.peers.half.Await(ctx)
	ad := a.finalUpdate(ctx)
	status, reason := a.work.run.Exit.WaitStatus, shadow.JobExited
	// An order that came after the job's end does not change how it ended.
	switch e := a.orders.Ended(); {
	case a.work.run.Ordered() && e != nil && e.Remove:
		reason = shadow.JobKilled
	case a.work.run.Requeued():
		reason = shadow.JobShouldRequeue
	case a.work.coreFile != "":
		reason = shadow.JobCoreDumped
	}
	a.log.Debug(fmt.Sprintf("Notifying exit status=%d reason=%d", status, reason))
	if err := a.peers.shadow.JobExit(ctx, status, reason, ad); err != nil {
		a.io.GiveBack(ad)
		return fmt.Errorf("tell the shadow that the job has ended: %w", err)
	}
	return nil
}

// stageOut sends the output that the job has after this kind of end.
func (a *activation) stageOut(ctx context.Context) error {
	e := a.orders.Ended()
	kind, wanted := a.files.Output(jobfiles.Ending{
		Ready: true, Started: true,
		Evicted:    a.work.run.Ordered(),
		Fast:       a.work.run.Ordered() && !a.orders.Allows(orders.Hard),
		FinalOnRm:  a.work.run.Ordered() && e != nil && e.Code == shadow.VacateClaimDeactivated && e.Subcode == shadow.FinalTransfer,
		WaitStatus: a.work.run.Exit.WaitStatus,
	})
	if !wanted {
		return nil
	}
	ctx, release := a.orders.UntilCut(ctx)
	defer release()
	rescue.Go(func() { a.orders.TakeDownWith(ctx, a.work.container.Ending()) })
	a.work.inventory.After(ctx)
	var err error
	for again := true; again; again = err == nil {
		err = steps.Run(ctx, a.log, "stage-out", func(ctx context.Context) error { return a.sendFiles(ctx, kind) })
		switch {
		case err == nil:
			return a.peers.reports.Update(ctx, a.account.exiting(ctx))
		case !a.orders.Allows(orders.Hard):
			a.log.Warn("The transfer of output is cut short", "error", err)
			a.work.run.Becomes(payloadrun.Ordered)
			return nil
		}
		err = a.files.Again(ctx, err)
	}
	if errors.Is(err, shadow.ErrLost) || errors.Is(err, orders.ErrEnded) {
		return err
	}
	// The shadow writes the end of the job into its event log before it acts
	// on the error.
	if err := a.peers.shadow.JobTermination(ctx, a.account.process(job.Exited)); submitside.IgnoreUnlessLost(err) != nil {
		return err
	}
	return failure.OfTransfer(err, "")
}

// programs says how programs run for this job in the pilot container.
func (a *activation) programs() hostprog.Job {
	return hostprog.Job{Host: a.opt.Host, Sandbox: a.job.Sandbox, Name: a.job.Name, Environ: a.job.Environ, Log: a.log}
}

// openFiles gets ready to transfer the job's files.
func (a *activation) openFiles() error {
	var err error
	a.files, err = transfer.Open(a.transferOptions())
	return err
}

func (a *activation) transferOptions() transfer.Options {
	client := a.peers.calls.Shadow(a.job.Version())
	client.Timeout = a.opt.Settings.Condor.Transfer.Timeout
	over := a.peers.half.Over
	if n := a.job.Info.Node; n != nil && n.Number > 0 {
		over = func(string) {} // the shadow notes it in the ad of node 0 (parallelshadow.cpp), so that this node never sees it
	}
	return transfer.Options{
		Job: a.job.Ad, Machine: a.job.Machine, Info: a.job.Info, Sandbox: a.job.Sandbox, Programs: a.programs(), Settings: a.opt.Settings, Tokens: a.creds.Tokens(),
		Shadow: a.peers.shadow, Side: a.peers.side, Over: over, Tell: a.peers.reports.Tell, Note: a.peers.reports.Note, Log: a.log,
		Client: client,
	}
}

// sendFiles transfers what the job made. The job's own log does not grow
// meanwhile.
func (a *activation) sendFiles(ctx context.Context, kind jobfiles.Kind) error {
	added := a.work.added()
	if kind != jobfiles.Checkpoint {
		closeJobLog(a.opt)
		added = append(added, a.work.inventory.Output()...)
	}
	return a.files.Send(ctx, filetransfer.Upload{Kind: kind, Number: a.work.checkpoint, Added: added, Removed: a.io.Hidden()})
}

// outOfMemory holds the job, with what was measured, if the kernel killed any of
// its processes for want of memory, unless the job was asked to end
// (vanilla_proc.cpp:JobReaper, outOfMemoryEvent). How its main process ended does
// not count: a shell whose command was killed exits like any other.
func (a *activation) outOfMemory() error {
	if a.work.run.Exit.OOMKills == 0 || a.work.run.Ordered() {
		return nil
	}
	return a.heldForMemory(0, nil)
}

// heldForMemory is what it means to the job that the kernel killed it for want of memory,
// with its container or without. limit is the container's as the backend knows it, in
// bytes, 0 if it does not. cause is the backend's word, nil if there is none.
func (a *activation) heldForMemory(limit int64, cause error) error {
	if !a.opt.Settings.Condor.HoldOnOOM && a.gauges.meter.WithinLimit() {
		return failure.New(0, 0, errors.New("Worker node is out of memory")) //nolint:staticcheck // stock's words
	}
	err := errors.New(a.gauges.meter.Exhausted(a.job.Ad, limit))
	if cause != nil {
		err = fmt.Errorf("%w %w", err, cause)
	}
	return failure.New(shadow.HoldJobOutOfResources, shadow.OutOfMemory, err)
}
