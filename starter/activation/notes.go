package activation

import (
	"errors"
	"syscall"
	"time"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/imagefile"
	"podstarter/starter/journal"
	"podstarter/starter/orders"
)

// notes tell the pod's operator what becomes of the job. Its fields belong to the goroutine of
// the activation's phases, bound to that of the binding.
type notes struct {
	write func(journal.Event) error // nil for none
	calls func() map[string]int64   // to the API server so far; nil for none

	began  time.Time
	failed error // why it has no end of its own; nil if it has
	binds  time.Time
	bound  payload.Binding
}

// note appends an event about this job.
func (a *activation) note(e journal.Event) {
	if a.notes.write == nil {
		return
	}
	if a.job.Ad != nil {
		e.Job, e.Owner = a.job.Info.ID(), a.job.Info.User
	}
	e.Slot, e.SubmitHost = a.opt.Slot, a.opt.SubmitHost
	switch err := a.notes.write(e); {
	case errors.Is(err, journal.ErrFull): // a site without the keeper
		a.log.Debug("The pod's operator does not hear of this", "error", err)
	case err != nil:
		a.log.Warn("The pod's operator does not hear of this", "error", err)
	}
}

// noteBegin says which job it is.
func (a *activation) noteBegin() {
	a.note(journal.Event{Kind: journal.JobBegins})
}

// noteBound says that the job's container runs its image, and what had to be copied for that.
func (a *activation) noteBound(image string, copied imagefile.Copied) {
	b := a.notes.bound
	a.note(journal.Event{
		Kind: journal.ImageBound, Container: b.Container, Image: image, How: string(b.How),
		Seconds: time.Since(a.notes.binds).Seconds(), Fetched: b.Fetched.Seconds(),
		Copied: copied.Took.Seconds(), CopiedBytes: copied.Bytes,
	})
}

// noteEnd says how it ended.
func (a *activation) noteEnd(code int) {
	e := a.ending(code)
	e.Kind, e.Seconds, e.Container = journal.JobEnds, time.Since(a.notes.began).Seconds(), a.notes.bound.Container
	if k := a.job.Contained; k != nil {
		e.Image = k.Image
	} else if !a.image.Default() {
		e.Image = a.image.Name()
	}
	if run := a.work.run; run != nil {
		e.Started = true
		used := a.gauges.meter.Used()
		e.CPU, e.Memory = (used.UserCPU + used.SystemCPU).Seconds(), used.ResidentBytes
		end := time.Now()
		if run.Exit != nil {
			end = run.Exit.Ended
		}
		e.Ran = max(0, end.Sub(run.Started.Time).Seconds())
	}
	if a.notes.calls != nil {
		e.Calls = a.notes.calls()
	}
	a.note(e)
}

// ending is the part of it that says why. code is the process's exit code.
func (a *activation) ending(code int) journal.Event {
	demand, err := a.orders.Ended(), a.notes.failed
	if bug := a.panics.failure(); bug != nil {
		return journal.Event{Outcome: journal.Requeued, Code: shadow.VacateStarterError, Reason: failure.OneLine(bug)}
	}
	switch {
	case code == ExitLostShadow:
		return journal.Event{Outcome: journal.Lost, Reason: "the shadow is gone"}
	case demand != nil && (errors.Is(err, orders.ErrEnded) || errors.Is(err, shadow.ErrLost)):
		return demanded(*demand)
	case errors.Is(err, job.ErrMissed): // the shadow holds it
		return journal.Event{Outcome: journal.Held, Reason: failure.OneLine(err)}
	case err != nil:
		return failedBy(err)
	case a.work.run != nil && a.work.run.Exit != nil && !a.work.run.Ordered():
		if unfit := a.work.run.Java.Unfit; unfit != "" {
			return journal.Event{Outcome: journal.Requeued, Reason: unfit}
		}
		return byItself(a.work.run.Status())
	case demand != nil:
		return demanded(*demand)
	}
	return journal.Event{Outcome: journal.Lost}
}

// byItself is the end of a job that ended by itself.
func byItself(status syscall.WaitStatus) journal.Event {
	if status.Signaled() {
		return journal.Event{Outcome: journal.Signaled, Signal: int(status.Signal())}
	}
	code := status.ExitStatus()
	if code != 0 {
		return journal.Event{Outcome: journal.Exited, Exit: &code}
	}
	return journal.Event{Outcome: journal.Succeeded, Exit: &code}
}

// failedBy is the end of a job that could not go on.
func failedBy(err error) journal.Event {
	f := failure.Of(err)
	e := journal.Event{Outcome: journal.Held, Code: f.Code, Subcode: f.Subcode, Reason: failure.OneLine(f)}
	if shadow.ShouldVacate(f.Code, f.Subcode) {
		e.Outcome = journal.Requeued
	}
	if v := (*payload.Verdict)(nil); errors.As(err, &v) {
		e.Blame, e.Cause = v.Blame.String(), v.Reason
	}
	return e
}

// demanded is the end of a job that was told to end.
func demanded(d orders.Demand) journal.Event {
	e := journal.Event{Outcome: journal.Evicted, Code: d.Code, Subcode: d.Subcode, Reason: d.Error()}
	switch {
	case d.Lost:
		e.Outcome = journal.Lost
	case d.Hold:
		e.Outcome = journal.Held
	case d.Remove, d.Code == shadow.VacateClaimDeactivated:
		e.Outcome = journal.Withdrawn
	}
	return e
}
