package main

import (
	"context"
	"fmt"
	"time"

	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/rescue"
)

// takenDown gives the job its soft kill when the pod is taken from under it, and
// the hard one while there is still time to tell the shadow. The startd vacates
// its jobs as well when it is told to end, but it goes by its own times and the
// job's, which the kubelet does not know of.
func (a *activation) takenDown(ctx context.Context, n payload.Notice) {
	soft := softShare(n.Left)
	a.log.Warn("The job's container is being ended", "why", n.Reason, "left", n.Left, "job has", soft)
	a.orders.end(ending{reason: n.Reason, code: shadow.VacateStartdShutdown, soft: soft > 0, cause: true, cut: soft <= 0})
	if soft <= 0 {
		return
	}
	rescue.Go(func() {
		timer := time.NewTimer(soft)
		defer timer.Stop()
		select {
		case <-timer.C:
			a.orders.end(ending{reason: fmt.Sprintf("%s The job had %s to end by itself.", n.Reason, soft.Round(time.Second)), code: shadow.VacateStartdShutdown, cut: true})
		case <-ctx.Done():
		}
	})
}

// awaitTakedown does the same for a job that has ended and whose output is on its
// way; until ctx ends.
func (a *activation) awaitTakedown(ctx context.Context) {
	select {
	case n := <-a.container.Ending():
		a.takenDown(ctx, n)
	case <-ctx.Done():
	}
}

// whyTime bounds the wait for the reason of a container's end. A backend that
// does not know any says so sooner.
const whyTime = 20 * time.Second

// whyLost waits for the backend to find out why the connection to the wrapper
// has ended: that the container was killed for want of memory is another matter
// than that its pod was evicted. Nothing is left to be killed meanwhile.
func (a *activation) whyLost(ctx context.Context, lost error) error {
	timer := time.NewTimer(whyTime)
	defer timer.Stop()
	select {
	case err := <-a.container.Lost():
		return err
	case <-a.orders.hard:
	case <-timer.C:
	case <-ctx.Done():
	}
	return lost
}

// Of the time that is left, a third is kept for what comes after the job's end:
// its output, where the user wants that of an evicted job, and the words to
// shadow and startd. That takes a tenth of a second without output.
const (
	reserveShare = 3
	leastReserve = time.Second
	mostReserve  = 20 * time.Second
)

// softShare is how much of the time that is left the job has to end by itself.
func softShare(left time.Duration) time.Duration {
	return left - min(max(left/reserveShare, leastReserve), mostReserve)
}
