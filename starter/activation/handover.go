package activation

import (
	"context"
	"errors"

	"podstarter/condor/shadow"
	"podstarter/starter/orders"
)

// handOver tells the shadow how the job ended and gives it the job's output.
// When the connection is lost on the way, all of that is done again once a
// shadow has come back (starter.cpp:Starter::allJobsDone): what was said twice
// is the same twice, and the last call is answered once at most. Only the
// output is not sent again when it has arrived.
func (a *activation) handOver(ctx context.Context) error {
	for {
		err := a.tellExit(ctx)
		if !errors.Is(err, shadow.ErrLost) || !a.orders.Allows(orders.Hard) {
			return err
		}
		a.log.Warn("The job has ended, but the shadow is away: waiting for the job's lease to expire or for a reconnect attempt")
		if err := a.peers.side.Await(ctx); err != nil {
			return err
		}
	}
}

// tellExit is one try of handOver. An error that is shadow.ErrLost leaves all
// as it was.
func (a *activation) tellExit(ctx context.Context) error {
	if err := a.peers.reports.Update(ctx, a.account.exiting(ctx)); err != nil {
		return err
	}
	if err := a.stageOut(ctx); err != nil {
		return err
	}
	a.site.places.TearDown(ctx)
	return a.sayExited(ctx)
}
