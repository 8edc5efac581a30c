package orders

import (
	"context"
	"fmt"
	"time"

	"podstarter/condor/shadow"
	"podstarter/payload"
)

// TakeDown gives the job its soft kill when the pod is taken from under it, and the
// hard one while there is still time to tell the shadow. The startd vacates its jobs
// as well when it is told to end, but it goes by its own times and the job's, which
// the kubelet does not know.
func (o *Orders) TakeDown(ctx context.Context, n payload.Notice) {
	soft := softShare(n.Left)
	o.log.Warn("The job's container is being ended", "why", n.Reason, "left", n.Left, "job has", soft)
	d := Demand{Reason: n.Reason, Code: shadow.VacateStartdShutdown, Source: Pod, Urgency: Soft}
	if soft <= 0 {
		d.Urgency = Cut
		o.End(d)
		return
	}
	o.End(d)
	o.EndAfter(ctx, soft, Demand{
		Reason: fmt.Sprintf("%s The job had %s to end by itself.", n.Reason, soft.Round(time.Second)),
		Code:   shadow.VacateStartdShutdown, Urgency: Cut,
	})
}

// TakeDownWith does the same when a notice comes; until ctx ends.
func (o *Orders) TakeDownWith(ctx context.Context, notices <-chan payload.Notice) {
	select {
	case n := <-notices:
		o.TakeDown(ctx, n)
	case <-ctx.Done():
	}
}

// Of the time that is left, a third is kept for what comes after the job's end:
// its output, if the user wants that of an evicted job, and the words to shadow and
// startd, which take a tenth of a second without output.
const (
	reserveShare = 3
	leastReserve = time.Second
	mostReserve  = 20 * time.Second
)

// softShare is how much of the time that is left the job has to end by itself.
func softShare(left time.Duration) time.Duration {
	return left - min(max(left/reserveShare, leastReserve), mostReserve)
}
