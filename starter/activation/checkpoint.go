package activation

import (
	"context"
	"errors"
	"fmt"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/condor/startd"
	"podstarter/payload"
	"podstarter/rescue"
	"podstarter/sandbox/filetransfer"
	"podstarter/sandbox/jobfiles"
	"podstarter/starter/failure"
	"podstarter/starter/orders"
	"podstarter/starter/payloadrun"
	"podstarter/starter/steps"
)

// askCheckpoint sends the job its checkpoint signal, if it wants one
// (vanilla_proc.cpp:VanillaProc::Ckpt).
func (a *activation) askCheckpoint(ctx context.Context) {
	if !job.CheckpointsOf(a.job.Ad).BySignal || a.work.run.Course != payloadrun.Free {
		return
	}
	sig := job.SignalsOf(a.job.Ad).Checkpoint
	a.log.Info(fmt.Sprintf("Sending %s to the job, for a checkpoint", job.SignalName(sig)))
	if err := a.work.container.Client().Signal(ctx, sig, false); err != nil {
		a.log.Warn("The signal for a checkpoint did not reach the job", "error", err)
		return
	}
	a.work.run.Becomes(payloadrun.Saving)
}

// isCheckpoint says whether the main process has ended in the way that means a
// checkpoint, and is to be started again.
func (a *activation) isCheckpoint(exit payload.Exit) bool {
	how := job.CheckpointsOf(a.job.Ad)
	return !a.peers.reports.Held() && !a.work.run.Ordered() && (how.Self || a.work.run.Course == payloadrun.Saving) && exit.WaitStatus == how.Status
}

// checkpointed checks whether the end of the main process means a checkpoint. If
// so, it sends what the process saved to the access point, and the process is to
// be started again, in the same container and with the same files. Processes that
// it left behind go on, as under stock (vanilla_proc.cpp:JobReaper,
// restartCheckpointedJob).
func (a *activation) checkpointed(ctx context.Context) (again bool, err error) {
	run, how := a.work.run, job.CheckpointsOf(a.job.Ad)
	as := run.Exit.WaitStatus == how.Status
	if !a.isCheckpoint(*run.Exit) && run.Course != payloadrun.Saving {
		return false, nil // it has ended, or is made to
	}
	if err := a.tellEnd(ctx); err != nil {
		return false, err
	}
	if !as {
		if err := a.outOfMemory(); err != nil {
			return false, err
		}
		return false, a.hold(ctx, shadow.HoldFailedToCheckpoint, run.Exit.WaitStatus, how.Broken(run.Status()))
	}
	if err := a.saveCheckpoint(ctx); err != nil || a.peers.reports.Held() {
		return false, err
	}
	if a.orders.Ended() != nil {
		// The job's work is saved; there is no use in starting it again.
		run.Becomes(payloadrun.Ordered)
		return false, nil
	}
	if !a.mayRestart(ctx) {
		return false, failure.New(shadow.VacateCheckpointSaved, 0, errors.New( //nolint:staticcheck // stock's sentence
			"Rescheduling self-checkpoint job after checkpoint upload because reactivating the claim would have failed."))
	}
	a.log.Info("The job is started again after its checkpoint")
	a.gauges.meter.NextRun()
	a.work.container.NextRun()
	return true, nil
}

// saveCheckpoint transfers a checkpoint and tells the shadow. A transfer that may
// work another time does not end the job: there will be other checkpoints.
func (a *activation) saveCheckpoint(ctx context.Context) error {
	if a.work.runs == 1 {
		a.work.checkpoint = a.job.Ad.IntOr("CheckpointNumber", -1)
	}
	a.work.checkpoint++ // also for one that fails: half of it may have arrived
	err := a.sendCheckpoint(ctx)
	switch {
	case err == nil:
		p := job.Process{Started: a.work.run.Exit.Started, Ended: a.work.run.Exit.Ended}
		ad := a.account.process(job.Exited)
		a.account.publishVacate(ad)
		job.PublishCheckpoint(ad, a.work.checkpoint, p)
		a.peers.reports.Tell(ctx, ad)
		a.peers.tellCheckpoint(ctx, shadow.EventSuccessfulCheckpoint, a.work.checkpoint)
		return nil
	case !a.orders.Allows(orders.Cut):
		return nil
	}
	if t := (*filetransfer.Error)(nil); errors.As(err, &t) && !t.TryAgain {
		return a.hold(ctx, shadow.HoldFailedToCheckpoint, -1, "Starter failed to upload checkpoint: "+t.Text)
	}
	a.log.Warn("JICShadow::uploadCheckpointFiles() failed: "+failure.OneLine(err), "number", a.work.checkpoint)
	a.log.Info("JICShadow::uploadCheckpointFiles() will retry checkpoint upload later: the job goes on to the next")
	a.peers.tellCheckpoint(ctx, shadow.EventFailedCheckpoint, a.work.checkpoint)
	return nil
}

// hold puts a job on hold that ended in the wrong way, before the startd hears of
// the end (jic_shadow.cpp:holdJob).
func (a *activation) hold(ctx context.Context, code, subcode int, why string) error {
	a.notes.failed = failure.New(code, subcode, errors.New(why))
	err := a.peers.reports.Hold(ctx, shadow.RemoteError{Message: why, Code: code, Subcode: subcode, Critical: true})
	if err != nil {
		return failure.New(code, subcode, errors.New(why)) // reported when a shadow is back
	}
	a.log.Error("The job is put on hold", "why", why)
	return nil
}

// tellCheckpoint tells the shadow what became of a checkpoint.
func (p *peers) tellCheckpoint(ctx context.Context, kind string, number int64) {
	event := shadow.Event(kind)
	event.SetInt("CheckpointNumber", number)
	if err := p.reports.Event(ctx, event); err != nil {
		p.log.Warn("The shadow did not hear of a checkpoint", "what", kind, "number", number, "error", err)
	}
}

// errNoTransfer says why a job's checkpoint is not saved.
var errNoTransfer = errors.New("the job has no file transfer")

func (a *activation) sendCheckpoint(ctx context.Context) error {
	if a.files == nil {
		return errNoTransfer
	}
	ctx, release := a.orders.UntilCut(ctx)
	defer release()
	rescue.Go(func() { a.orders.TakeDownWith(ctx, a.work.container.Ending()) })
	return steps.Run(ctx, a.log, "checkpoint", func(ctx context.Context) error { return a.sendFiles(ctx, jobfiles.Checkpoint) })
}

// verifyCheckpoint checks that a checkpoint which came from a checkpoint_destination
// is what was saved there. If not, the shadow forgets it, and the job goes back to
// the queue and begins with an earlier one (jic_shadow.cpp:transferInputStatus). An
// older shadow would send the same one for ever, so the job is held.
func (a *activation) verifyCheckpoint(ctx context.Context) error {
	if to, err := a.job.Ad.GetString("CheckpointDestination"); err != nil || to == "" {
		return nil
	}
	err := a.files.VerifyCheckpoint(ctx)
	bad := (*filetransfer.CheckpointError)(nil)
	switch {
	case err == nil, ctx.Err() != nil:
		return context.Cause(ctx)
	case !errors.As(err, &bad):
		return fmt.Errorf("verify the checkpoint: %w", err)
	}
	if !a.peers.shadow.ForgetsCheckpoints() {
		return failure.New(shadow.HoldDownloadFileError, 0, fmt.Errorf("%w The access point cannot go back to an earlier checkpoint; "+
			"repair what is stored at the checkpoint_destination, or submit the job again", bad))
	}
	if bad.Number >= 0 {
		a.peers.tellCheckpoint(ctx, shadow.EventInvalidCheckpoint, bad.Number)
	}
	return failure.New(0, 0, bad)
}

// mayRestart asks the startd whether the slot is still the job's. If the startd
// cannot be asked, the job is started: the startd can still end it.
func (a *activation) mayRestart(ctx context.Context) bool {
	if !a.opt.Settings.Condor.AskToRestart || !startd.KnowsReactivation(a.job.Version()) {
		return true
	}
	client := a.peers.calls.Startd(a.job.Version())
	may, err := startd.MayReactivate(ctx, client, a.peers.inherited.Parent.String(), a.job.ClaimID())
	if err != nil {
		a.log.Warn("The job is started again without the startd's consent", "error", err)
		return true
	}
	return may
}
