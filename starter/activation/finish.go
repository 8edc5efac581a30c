package activation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
	"podstarter/payload"
	"podstarter/rescue"
	"podstarter/sandbox/filetransfer"
	"podstarter/sandbox/jobfiles"
	"podstarter/starter/failure"
	"podstarter/starter/orders"
	"podstarter/starter/submitside"
	"podstarter/starter/transfer"
)

// finish is what happens between the end of the job's main process and the
// word to the shadow that it has ended. Usage and exit status travel in
// updates, since the last call's ad is expected to hold neither
// (jic_shadow.cpp:notifyJobExit).
func (a *activation) finish(ctx context.Context) error {
	if a.reports.Held() {
		// The shadow has hung up; the hold was the last word.
		return a.finishHeld(ctx)
	}
	if err := a.tellEnd(ctx); err != nil {
		return err
	}
	a.reports.Promise(0)
	// Children that the job left behind must not write into files that are
	// being transferred.
	if err := a.sweep(ctx); err != nil {
		return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("something of the job is left in its container: %w", err))
	}
	if err := a.drainStreams(ctx); err != nil {
		return err
	}
	if err := a.outOfMemory(); err != nil {
		return err
	}
	a.keepCore()
	if err := a.afterJob(ctx); err != nil {
		return err
	}
	a.drainChirp(ctx)
	return a.handOver(ctx)
}

// afterJob runs what is to run after the job and before its output is sent.
func (a *activation) afterJob(ctx context.Context) error {
	if err := a.postScript(ctx); err != nil {
		return err
	}
	if a.scripts.post != nil {
		a.swept = false // it may have left something
		if err := a.sweep(ctx); err != nil {
			return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("something of the job's PostCmd is left in the container: %w", err))
		}
	}
	a.exitHook(ctx)
	return nil
}

// tellEnd tells shadow and startd that the main process has ended, once. The
// state in that update is still the one before: a shadow takes no job from
// Suspended to Exited (os_proc.cpp:JobReaper).
func (a *activation) tellEnd(ctx context.Context) error {
	if a.payload.told {
		return nil
	}
	if err := a.wrapperFailure(); err != nil {
		return err
	}
	a.payload.told = true
	reaped := a.reapedAd()
	a.reports.Tell(ctx, reaped.Clone())
	a.lastUpdateHook(ctx, reaped)
	if _, err := a.shadow.EventNotification(ctx, shadow.Event(shadow.EventExecutionExit)); err != nil {
		a.log.Debug("The shadow does not count the time of the job's execution", "error", err)
	}
	return nil
}

// sayExited is the last call to the shadow.
func (a *activation) sayExited(ctx context.Context) error {
	if err := a.failures.failure(); err != nil {
		return err // what a program that has failed says of the job is not to be believed
	}
	a.half.Await(ctx)
	ad := a.finalUpdate(ctx)
	status, reason := a.payload.exit.WaitStatus, shadow.JobExited
	// An order that came when the job had ended changes nothing of how it did.
	switch e := a.orders.Ended(); {
	case a.payload.ordered && e != nil && e.Remove:
		reason = shadow.JobKilled
	case a.payload.ordered:
		reason = shadow.JobShouldRequeue
	case a.coreFile != "":
		reason = shadow.JobCoreDumped
	}
	a.log.Debug(fmt.Sprintf("Notifying exit status=%d reason=%d", status, reason))
	if err := a.shadow.JobExit(ctx, status, reason, ad); err != nil {
		a.chirp.giveBackDelayed(ad)
		return fmt.Errorf("tell the shadow that the job has ended: %w", err)
	}
	return nil
}

// stageOut sends the job's output, or what the way it ended leaves of it.
func (a *activation) stageOut(ctx context.Context) error {
	e := a.orders.Ended()
	kind, wanted := a.files.Output(jobfiles.Ending{
		Ready: true, Started: true,
		Evicted:    a.payload.ordered,
		Fast:       a.payload.ordered && !a.orders.Allows(orders.Hard),
		FinalOnRm:  a.payload.ordered && e != nil && e.Code == shadow.VacateClaimDeactivated && e.Subcode == shadow.FinalTransfer,
		WaitStatus: a.payload.exit.WaitStatus,
	})
	if !wanted {
		return nil
	}
	ctx, release := a.orders.UntilCut(ctx)
	defer release()
	rescue.Go(func() { a.orders.TakeDownWith(ctx, a.container.Ending()) })
	var err error
	for again := true; again; again = err == nil {
		err = phase(ctx, a.log, "stage-out", func(ctx context.Context) error { return a.sendFiles(ctx, kind) })
		switch {
		case err == nil:
			return a.reports.Update(ctx, a.exitAd(ctx))
		case !a.orders.Allows(orders.Hard):
			a.log.Warn("The transfer of output is cut short", "error", err)
			a.payload.ordered = true
			return nil
		}
		err = a.files.Again(ctx, err)
	}
	if errors.Is(err, shadow.ErrLost) || errors.Is(err, orders.ErrEnded) {
		return err
	}
	// The shadow writes the end of the job into its event log before it acts
	// on the error.
	if err := a.shadow.JobTermination(ctx, a.processAd(job.Exited)); submitside.IgnoreUnlessLost(err) != nil {
		return err
	}
	return failure.OfTransfer(err, "")
}

// openFiles gets ready to transfer the job's files.
func (a *activation) openFiles() error {
	var err error
	a.files, err = transfer.Open(transfer.Options{
		Job: a.ad, Machine: a.machine, Info: a.info, Sandbox: a.sandbox, Programs: a.programs(), Settings: a.set, Tokens: a.creds.Tokens(),
		Shadow: a.shadow, Side: a.submit, Over: a.half.Over, Tell: a.reports.Tell, Log: a.log,
		Client: &cedar.Client{Version: a.version(), Own: a.address, Name: "STARTER " + a.address, Timeout: a.set.Condor.Transfer.Timeout},
	})
	return err
}

// sendFiles is the transfer of what the job made. The job's own log does not grow
// meanwhile.
func (a *activation) sendFiles(ctx context.Context, kind jobfiles.Kind) error {
	if kind != jobfiles.Checkpoint {
		a.closeJobLog()
	}
	return a.files.Send(ctx, filetransfer.Upload{Kind: kind, Number: a.checkpoint, Added: a.addedOutput(), Removed: a.chirp.hidden()})
}

// outOfMemory turns the kernel's killing of any of the job's processes for want
// of memory into a hold with what was measured, unless the job was asked to end
// (vanilla_proc.cpp:JobReaper, outOfMemoryEvent). How its main process ended
// meanwhile does not count: a shell whose command was killed exits like any other.
func (a *activation) outOfMemory() error {
	if a.payload.exit.OOMKills == 0 || a.payload.ordered {
		return nil
	}
	if !a.set.Condor.HoldOnOOM && a.meter.WithinLimit() {
		return failure.New(0, 0, errors.New("Worker node is out of memory")) //nolint:staticcheck // stock's words
	}
	return failure.New(shadow.HoldJobOutOfResources, shadow.OutOfMemory, errors.New(a.meter.Exhausted(a.ad)))
}

// sweep kills what is left of the payload and proves that nothing is.
func (a *activation) sweep(ctx context.Context) error {
	if a.swept || a.container == nil {
		return nil
	}
	if a.table != nil {
		// What the job has left may leave the wrapper no CPU time to do it.
		if err := a.table.Strike(ctx); err != nil {
			a.log.Warn("Failed to kill what is left of the job at once", "error", err)
		}
	}
	err := a.container.Client().Sweep(ctx)
	if a.table != nil {
		// The starter's own look is the last word: the wrapper may be gone.
		ctx, cancel := context.WithTimeout(ctx, sweepTime)
		defer cancel()
		if left := a.table.KillAll(ctx); left != nil || !errors.Is(err, payload.ErrLost) {
			err = errors.Join(err, left)
		} else {
			err = nil
		}
	}
	a.swept = err == nil
	return err
}

// sweepTime bounds the killing of what is left of a payload. SIGKILL takes
// milliseconds; a process that survives it hangs in the kernel.
const sweepTime = 10 * time.Second
