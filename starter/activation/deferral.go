package activation

import (
	"context"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/starter/failure"
	"podstarter/starter/steps"
	"podstarter/starter/submitside"
)

// deferStart waits for the time that the job asks for. Its files and its container
// are ready by then, so that it starts on the second.
func (a *activation) deferStart(ctx context.Context) error {
	wait, err := job.Deferral(a.job.Ad, time.Now())
	if err != nil {
		return err
	}
	a.log.Info(job.LineDeferral(a.job.Info, wait))
	if wait == 0 {
		return nil
	}
	return steps.Run(ctx, a.log, "defer", func(ctx context.Context) error { return submitside.Pause(ctx, wait) })
}

// endMissed tells the shadow that the job has missed its time; the shadow puts it
// on hold. Nothing ran, so nothing is returned, and the hook for the end hears of an exit
// (starter.cpp:jobWaitUntilExecuteTime, job_info_communicator.cpp:allJobsDone).
func (a *activation) endMissed(ctx context.Context, err error) int {
	a.log.Info("The job is not started", "reason", failure.OneLine(err))
	if err := a.peers.reports.Update(ctx, classads.NewAd()); err != nil {
		return a.end(ctx, err)
	}
	if _, err := a.peers.shadow.EventNotification(ctx, shadow.Event(shadow.EventExecutionExit)); err != nil {
		a.log.Warn("Failed to tell the shadow that nothing runs", "error", err)
	}
	a.exitHook(ctx)
	ad := a.finalUpdate(ctx)
	if err := a.peers.shadow.JobExit(ctx, shadow.JobStatusNeverStarted, shadow.JobMissedDeferralTime, ad); err != nil {
		a.log.Error("Failed to tell the shadow that the job has missed its time", "error", err)
	}
	return ExitNormal
}
