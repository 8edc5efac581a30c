package activation

import (
	"context"
	"errors"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/condor/startd"
	"podstarter/starter/failure"
	"podstarter/starter/hooks"
	"podstarter/starter/orders"
	"podstarter/starter/submitside"
)

// Exit codes of the process, as the startd reads them (HTCondor
// src/condor_includes/exit.h; src/condor_startd.V6/claim.cpp:starterExited).
const (
	ExitNormal     = 0
	ExitGeneral    = 1
	ExitLostShadow = 2
	ExitException  = 3
)

// conclude tells startd and shadow of an end that live could not report itself, and
// picks the exit code of the process.
func (a *activation) conclude(ctx context.Context, err error) int {
	code := ExitNormal
	if err != nil {
		a.enter(failed)
		a.notes.failed = err
		code = a.end(ctx, err)
	}
	a.enter(over)
	return code
}

// end ends a job that has no end of its own to report.
func (a *activation) end(ctx context.Context, err error) int {
	ended := a.orders.Ended()
	if ended == nil && errors.Is(err, shadow.ErrLost) && a.peers.side.Lease() <= 0 {
		// No shadow can come back. The order to end that follows may be a moment late.
		_ = a.peers.side.Await(ctx)
		ended = a.orders.Ended()
	}
	switch {
	case ended != nil && ended.Lost:
		a.log.Error("The shadow is gone, the job ends with it", "error", err)
		a.finalUpdate(ctx)
		return ExitLostShadow
	case ended != nil && errors.Is(err, submitside.ErrAbort):
		a.log.Info("The job ends as the shadow wants", "reason", ended.Error())
		a.exitHook(ctx)
		a.finalUpdate(ctx) // the shadow has a reason of its own
		return ExitNormal
	case ended != nil && (errors.Is(err, orders.ErrEnded) || errors.Is(err, shadow.ErrLost)):
		a.log.Info("The job ends before it could finish", "reason", ended.Error())
		a.exitHook(ctx)
		a.endEarly(ctx, *ended)
		return ExitNormal
	case errors.Is(err, job.ErrMissed):
		return a.endMissed(ctx, err)
	}
	return a.giveUp(ctx, err)
}

// giveUp reports that the job cannot go on, and why.
func (a *activation) giveUp(ctx context.Context, err error) int {
	if !a.isDataSlot() { // whose failure says nothing of the containers
		a.health.Failed(failure.Blame(err, a.work.run != nil))
	}
	if a.opt.Alone { // as stock (StarterHookMgr.cpp, starter.cpp:RemoteShutdownFast)
		a.exitHook(ctx)
	}
	f := failure.Of(err)
	a.log.Error("The job cannot go on", "error", failure.OneLine(f), "code", f.Code, "subcode", f.Subcode)
	a.report(ctx, shadow.RemoteError{Message: f.Error(), Code: f.Code, Subcode: f.Subcode, Critical: true})
	switch f.Code {
	case shadow.VacateStarterError:
		return ExitGeneral
	case shadow.VacateCheckpointSaved:
		return int(shadow.JobShouldRequeue) // sic: vanilla_proc.cpp:JobReaper
	}
	return ExitNormal
}

// endEarly ends an activation whose job has no end of its own to report. The shadow
// knows of a demand that came through it. It hears of any other as a reason for another
// try: a shadow that only loses its starter would wait for it to come back.
func (a *activation) endEarly(ctx context.Context, d orders.Demand) {
	if a.work.run == nil && a.job.Sandbox != nil {
		a.peers.reports.Tell(ctx, a.account.exiting(ctx))
	}
	if d.Code == shadow.VacateClaimDeactivated || a.peers.reports.Held() || a.deactivated(ctx, d) {
		a.finalUpdate(ctx)
		return
	}
	a.report(ctx, shadow.RemoteError{Message: d.Error(), Code: d.Code, Subcode: d.Subcode, Critical: true})
}

// askTime bounds a question to the startd, in the middle of an end.
const askTime = 5 * time.Second

// deactivated reports whether a demand without a reason came through the shadow, which then
// waits for nothing. A startd that gives no reasons is asked. If that fails, the shadow is
// told: one that only loses its starter may wait for the job's lease to end.
func (a *activation) deactivated(ctx context.Context, d orders.Demand) bool {
	if d.Reason != "" || d.Code != 0 || a.work.run != nil || startd.GivesReasons(a.job.Version()) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	client := a.peers.calls.Startd(a.job.Version())
	state, err := startd.SlotState(ctx, client, a.peers.inherited.Parent.String(), a.job.ClaimID(), a.job.Machine.StringOr("Name", ""))
	if err != nil {
		a.log.Debug("Whether the shadow knows of the end is not known; it is told", "error", err)
		return false
	}
	return state == "Claimed"
}

// report is the last word to startd and shadow when the job has no exit. To hold a job
// that ran, report waits for a shadow; a job goes back to the queue without a word, too.
func (a *activation) report(ctx context.Context, e shadow.RemoteError) {
	if a.work.run != nil && !shadow.ShouldVacate(e.Code, e.Subcode) {
		if err := a.peers.side.Await(ctx); err != nil {
			a.log.Error("The shadow is not there to hold the job", "error", err)
		}
	}
	a.peers.half.Await(ctx)
	a.finalUpdate(ctx)
	if err := a.peers.reports.Error(ctx, e); err != nil {
		a.log.Error("Failed to send the error to the shadow", "error", err)
	}
}

// exitHook runs the hook that hears of the job's end.
func (a *activation) exitHook(ctx context.Context) {
	if a.job.Sandbox == nil {
		return
	}
	about := a.account.process(job.Exited)
	a.work.scripts.Publish(about)
	ended := a.orders.Ended()
	if ended != nil {
		job.PublishVacate(about, job.Vacated{Reason: ended.Reason, Code: ended.Code, Subcode: ended.Subcode})
	}
	reason := "exit" // an order that came when the job had ended changes nothing
	if a.work.run == nil || a.work.run.Ordered() {
		reason = hooks.Reason(ended)
	}
	if a.opt.Alone && a.notes.failed != nil && ended == nil && !errors.Is(a.notes.failed, job.ErrMissed) {
		reason = hooks.Reason(&orders.Demand{})
	}
	a.site.hooks.Exit(ctx, about, reason)
}

// finalUpdate sends the startd its last update, once: from then on the startd
// regards the slot as being cleaned up.
func (a *activation) finalUpdate(ctx context.Context) *classads.Ad {
	a.creds.Stop()
	ad := classads.NewAd()
	if a.job.Sandbox != nil {
		ad = a.account.full(ctx, "")
	}
	ad.SetInt("BytesSent", a.files.Sent())
	ad.SetInt("BytesRecvd", a.files.Received())
	a.peers.reports.Final(ctx, ad)
	return ad
}
