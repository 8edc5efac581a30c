package activation

import (
	"context"
	"errors"

	"podstarter/condor/shadow"
	"podstarter/starter/orders"
)

// handOver tells the shadow how the job ended and gives it the job's output.
// When the connection is lost on the way, it does all of that again once a
// shadow has come back (starter.cpp:Starter::allJobsDone): what it says twice
// is the same, and the last call is answered at most once. Output that has
// arrived is not sent again.
func (a *activation) handOver(ctx context.Context) error {
	for {
		err := a.tellExit(ctx)
		if n := a.job.Info.Node; !errors.Is(err, shadow.ErrLost) || !a.orders.Allows(orders.Hard) || n != nil && !n.Awaited {
			return err
		}
		a.log.Warn("JobExit() failed, waiting for job lease to expire or for a reconnect attempt: the job has ended, but the shadow is away")
		if err := a.peers.side.Await(ctx); err != nil {
			return err
		}
	}
}

// tellExit is one try of handOver. After shadow.ErrLost it can be called again.
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
