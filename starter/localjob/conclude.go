package localjob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"podstarter/condor/job"
	"podstarter/condor/jobpolicy"
	"podstarter/condor/qmgmt"
	"podstarter/condor/shadow"
	"podstarter/condor/userlog"
	"podstarter/payload/procfamily"
	"podstarter/starter/discard"
	"podstarter/starter/failure"
	"podstarter/starter/orders"
)

// conclude says what the end of the life means to the job: in its event log, in the queue, and by the exit code of the process
// (jic_local_schedd.cpp:notifyJobExit, allJobsGone).
func (l *life) conclude(ctx context.Context, err error) int {
	if l.events == nil { // nothing is known of the job yet
		return l.unprepared(ctx, err)
	}
	var code int
	switch {
	case err == nil:
		l.publish()
		code = l.atEnd()
	case errors.Is(err, job.ErrMissed):
		l.log.Info("The job is not started", "reason", failure.OneLine(err))
		code = ExitMissed
	case l.orders.Ended() != nil && (errors.Is(err, orders.ErrEnded) || l.run != nil):
		l.log.Info("The job ends before it could finish", "reason", l.orders.Ended().Error())
		code = l.ordered()
		if !l.begun && l.decided == nil {
			return code // the schedd knows more of it than this process, and logs it
		}
	default:
		code = l.giveUp(ctx, err)
	}
	l.tell(code)
	if err := l.update(ctx, code); err != nil {
		l.log.Error("The queue does not know how the job ended; the schedd will run it again", "error", err)
		l.write(userlog.RemoteError{Host: l.address.String(), Message: err.Error()}, false)
		return ExitException
	}
	return code
}

// unprepared is the end of a job for which nothing could be made.
func (l *life) unprepared(ctx context.Context, err error) int {
	if l.orders.Ended() != nil {
		return l.ordered()
	}
	l.log.Error("The job cannot be prepared, and goes back to the queue", "error", failure.OneLine(err))
	l.pause(ctx)
	return ExitRequeue
}

func (l *life) pause(ctx context.Context) {
	ctx, release := l.orders.UntilAny(ctx)
	defer release()
	timer := time.NewTimer(l.opt.RequeuePause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// publish writes into the ad what is known of the ended process.
func (l *life) publish() {
	p := job.Process{PID: l.run.Started.PID, State: job.Exited, Now: time.Now()}
	l.meter.AddTo(&p)
	exit := l.run.Exit
	p.Started, p.Ended, p.Status = exit.Started, exit.Ended, l.run.Status()
	born := l.ad.IntOr("JobStartDate", 0) // the policies count from the schedd's
	job.PublishProcess(l.ad, p, l.opt.Settings.Config)
	if born > 0 {
		l.ad.SetInt("JobStartDate", born)
	}
}

// atEnd is the exit code after the end of the main process.
func (l *life) atEnd() int {
	if l.run.Ordered() {
		return l.ordered()
	}
	d := l.policy.AtExit(l.ad, time.Now())
	switch d.Action {
	case jobpolicy.Hold:
		l.hold(d.Reason, d.Code, d.Subcode)
		return ExitHold
	case jobpolicy.Stay:
		l.ad.SetString("RequeueReason", d.Reason)
		return ExitRequeue
	}
	return ExitCompleted
}

// ordered is the exit code of a job that had to end.
func (l *life) ordered() int {
	if d := l.decided; d != nil {
		switch d.Action {
		case jobpolicy.Hold:
			l.hold(d.Reason, d.Code, d.Subcode)
			return ExitHold
		case jobpolicy.Remove:
			l.ad.SetString("RemoveReason", d.Reason)
			return ExitRemove
		}
		l.ad.SetString("RequeueReason", d.Reason)
		return ExitRequeue
	}
	switch e := l.orders.Ended(); {
	case e.Remove: // condor_hold as well: the schedd knows which it was
		return ExitRemove
	case e.Hold:
		return ExitHold
	}
	return ExitRequeue
}

func (l *life) hold(reason string, code, subcode int) {
	l.ad.SetString("HoldReason", reason)
	l.ad.SetInt("HoldReasonCode", int64(code))
	l.ad.SetInt("HoldReasonSubCode", int64(subcode))
}

// giveUp reports that the job cannot go on, and why.
func (l *life) giveUp(ctx context.Context, err error) int {
	f := failure.Of(err)
	l.log.Error("The job cannot go on", "error", failure.OneLine(f), "code", f.Code, "subcode", f.Subcode)
	if l.run != nil && l.run.Exit != nil {
		l.publish()
	}
	l.write(userlog.RemoteError{Host: l.address.String(), Message: f.Error()}, false)
	if shadow.ShouldVacate(f.Code, f.Subcode) {
		l.pause(ctx)
		return ExitRequeue
	}
	l.hold(f.Error(), f.Code, f.Subcode)
	return ExitHold
}

// tell writes the event for an exit code. It depends on that alone, since a policy may have changed what the end means.
func (l *life) tell(code int) {
	ending, known := l.ending()
	cpu := l.cpu()
	switch {
	case code == ExitCompleted:
		l.write(userlog.Terminated{Ending: ending, Local: cpu}, true)
	case code == ExitRequeue && known:
		l.write(userlog.Evicted{Requeued: &ending, Reason: l.ad.StringOr("RequeueReason", ""), Local: cpu}, true)
	default:
		l.write(userlog.Evicted{Local: cpu}, true)
	}
}

func (l *life) ending() (userlog.Ending, bool) {
	if l.run == nil || l.run.Exit == nil {
		return userlog.Ending{}, false
	}
	if status := l.run.Status(); status.Signaled() {
		return userlog.Ending{Signal: int(status.Signal())}, true
	} else {
		return userlog.Ending{ExitCode: status.ExitStatus()}, true
	}
}

func (l *life) cpu() userlog.CPU {
	seconds := func(name string) time.Duration { return time.Duration(l.ad.RealOr(name, 0)) * time.Second }
	return userlog.CPU{User: seconds("RemoteUserCpu"), System: seconds("RemoteSysCpu")}
}

// Tries to tell the queue, and the pause between two, by default (jic_local_schedd.cpp:JICLocalSchedd).
const (
	defaultRetries = 5
	defaultDelay   = 30 * time.Second
	maxRetries     = 1_000_000
)

// moments are what the queue is told for an exit code.
var moments = map[int]qmgmt.Moment{
	ExitCompleted: qmgmt.Terminated, ExitRequeue: qmgmt.Requeued, ExitRemove: qmgmt.Removed, ExitHold: qmgmt.Held, ExitMissed: qmgmt.Held,
}

// update tells the queue how the job has ended, and tries again if that fails, unless there is no time.
func (l *life) update(ctx context.Context, code int) error {
	knobs := l.opt.Settings.Config
	retries, err := knobs.Int("LOCAL_UNIVERSE_MAX_JOB_CLEANUP_RETRIES", defaultRetries)
	if err != nil || retries > maxRetries {
		retries = defaultRetries
	}
	delay, err := knobs.Seconds("LOCAL_UNIVERSE_JOB_CLEANUP_RETRY_DELAY", defaultDelay)
	if err != nil {
		delay = defaultDelay
	}
	for try := int64(0); ; try++ {
		err := l.queue.Update(ctx, moments[code], l.ad)
		if err == nil || qmgmt.Gone(err) {
			return nil
		}
		if !l.orders.Allows(orders.Hard) {
			l.log.Error("Failed to tell the queue how the job ended, and there is no time to try again", "error", err)
			return nil
		}
		if try >= retries {
			// In stock's words (jic_local_schedd.cpp:retryJobCleanup).
			return fmt.Errorf("Maximum number of job cleanup retry attempts (LOCAL_UNIVERSE_MAX_JOB_CLEANUP_RETRIES=%d) reached: %w", retries, err) //nolint:staticcheck // an event begins so
		}
		l.log.Error("Failed to tell the queue how the job ended; another try follows", "error", err, "after", delay)
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-l.orders.Hard():
			timer.Stop()
		}
	}
}

// clean removes what the job leaves on the machine, whatever happened.
func (l *life) clean(ctx context.Context) {
	if l.lease != nil {
		if err := l.lease.Release(ctx); err != nil {
			l.log.Error("Failed to end the wrapper", "error", err)
		}
	}
	l.group.Wait()
	if err := endOrphans(ctx); err != nil {
		l.log.Error("Something of the job is left", "error", err)
	}
	if l.control != "" {
		//nolint:forbidigo // in EXECUTE, which only HTCondor may change
		if err := os.RemoveAll(l.control); err != nil {
			l.log.Error("Failed to remove the wrapper's directory; the schedd removes it when it starts again", "error", err)
		}
	}
	if box := l.job.Sandbox; box != nil {
		discard.Discard(ctx, box, discard.Knobs(l.opt.Settings.Condor.Sandbox), l.log)
	}
	l.log.Info("All jobs have exited... starter exiting")
}

// endOrphans ends what is left of the job if its wrapper could not do that. Nothing else descends from this process.
func endOrphans(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	return procfamily.OfDescendants("/proc", os.Getpid()).Kill(ctx, nil) // which is for those of a user
}
