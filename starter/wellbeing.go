package main

import (
	"context"
	"fmt"
	"time"

	"podstarter/payload"
	"podstarter/starter/failure"
)

// wellbeing notes what this activation learned about the pod, before the shadow
// hears of its end: by the time the shadow can ask for the claim again, the
// startd knows whether the slot takes jobs.
func (a *activation) wellbeing(err error) {
	slot := slotID(a.slot())
	blame, reason := failure.Blame(err, a.payload != nil)
	var change func(h health, now time.Time, longest time.Duration) health
	switch blame {
	case payload.Pilot:
		change = func(h health, now time.Time, longest time.Duration) health { return h.fellSick(reason, now, longest) }
	case payload.Site:
		change = func(h health, now time.Time, longest time.Duration) health {
			return h.tired(slot, reason, now, longest)
		}
	default:
		return
	}
	if err := a.caretaker.note(change); err != nil {
		a.log.Warn("The slot goes on taking jobs although this one failed for want of a container", "error", err)
		return
	}
	if until, _ := a.restingUntil(); !until.IsZero() {
		a.log.Warn("This slot takes no jobs for a while", "blame", blame, "until", until)
	}
}

// boundWell notes that the slot's job got its container.
func (a *activation) boundWell() { a.noteWell(health.bound) }

// startedWell notes that something was started for the slot's job, or that the job
// is to blame that it was not.
func (a *activation) startedWell() {
	if a.well {
		return
	}
	a.well = true
	slot := slotID(a.slot())
	a.noteWell(func(h health) health { return h.well(slot) })
}

func (a *activation) noteWell(change func(h health) health) {
	err := a.caretaker.note(func(h health, _ time.Time, _ time.Duration) health { return change(h) })
	if err != nil {
		a.log.Warn("That this pod is well could not be noted", "error", err)
	}
}

func (a *activation) restingUntil() (time.Time, string) {
	h, err := a.caretaker.store.read()
	if err != nil {
		a.log.Warn("What was known of the pod's health is lost", "error", err)
	}
	return h.blocked(slotID(a.slot()), time.Now())
}

// restFirst waits out the rest of a slot that was given a job all the same: a
// startd without the monitor, or one that has not heard from it yet. Were the
// job sent back at once, it would come back at once.
func (a *activation) restFirst(ctx context.Context) error {
	until, reason := a.restingUntil()
	if until.IsZero() {
		return nil
	}
	pause := min(time.Until(until), a.set.MaxRest)
	a.log.Warn(fmt.Sprintf("This slot should rest; waiting %s before the next try", pause.Round(time.Second)), "reason", reason)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
