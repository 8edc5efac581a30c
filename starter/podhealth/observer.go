package podhealth

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"podstarter/payload"
)

// Observer notes what one activation learns of the pod. Bound, Failed and Rest
// belong to the goroutine of the activation's phases; Started may be called from
// any.
type Observer struct {
	pod  Pod
	slot string // SlotId; empty if the slot's name has no number
	log  *slog.Logger

	started sync.Once
}

// Observe begins the notes of an activation of a slot, such as "slot1_2".
func (p Pod) Observe(slot string, log *slog.Logger) *Observer {
	return &Observer{pod: p, slot: slotID(slot), log: log}
}

// Bound notes that the slot's job got its container.
func (o *Observer) Bound() { o.noteWell(Health.bound) }

// Started notes that something was started for the slot's job, or could not be
// through the job's own fault. Only the first call writes.
func (o *Observer) Started() {
	o.started.Do(func() { o.noteWell(func(h Health) Health { return h.started(o.slot) }) })
}

func (o *Observer) noteWell(change func(h Health) Health) {
	if err := o.pod.note(func(h Health, _ time.Time) Health { return change(h) }); err != nil {
		o.log.Warn("That this pod is well could not be noted", "error", err)
	}
}

// Failed notes why the activation failed if the pod (payload.Pilot) or its
// surroundings (payload.Site) are to blame. It must be called before the shadow
// hears of the end: by the time the shadow can ask for the claim again, the startd
// knows whether the slot takes jobs.
func (o *Observer) Failed(blame payload.Blame, reason string) {
	var change func(h Health, now time.Time) Health
	switch blame {
	case payload.Pilot:
		change = func(h Health, now time.Time) Health { return h.fellSick(reason, now, o.pod.LongestRest) }
	case payload.Site:
		change = func(h Health, now time.Time) Health { return h.tired(o.slot, reason, now, o.pod.LongestRest) }
	default:
		return
	}
	if err := o.pod.note(change); err != nil {
		o.log.Warn("The slot goes on taking jobs although this one failed for want of a container", "error", err)
		return
	}
	if until, _ := o.restingUntil(); !until.IsZero() {
		o.log.Warn("This slot takes no jobs for a while", "blame", blame, "until", until)
	}
}

// restingUntil is until when the slot takes no jobs, and why; zero if it does.
func (o *Observer) restingUntil() (time.Time, string) {
	h, err := o.pod.Health()
	if err != nil {
		o.log.Warn("What was known of the pod's health is lost", "error", err)
	}
	return h.blocked(o.slot, time.Now())
}

// Rest waits out the rest of a slot that was given a job all the same: by a startd
// without the monitor, or by one that has not heard from it yet. If the job were
// sent back at once, it would come back at once. The error is the cause of ctx's end.
func (o *Observer) Rest(ctx context.Context) error {
	until, reason := o.restingUntil()
	if until.IsZero() {
		return nil
	}
	pause := min(time.Until(until), o.pod.LongestRest)
	o.log.Warn(fmt.Sprintf("This slot should rest; waiting %s before the next try", pause.Round(time.Second)), "reason", reason)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
