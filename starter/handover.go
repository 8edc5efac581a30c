package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"podstarter/condor/shadow"
	"podstarter/sandbox/filetransfer"
	"podstarter/starter/orders"
	"podstarter/starter/submitside"
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
		if err := a.submit.Await(ctx); err != nil {
			return err
		}
	}
}

// tellExit is one try of handOver. An error that is shadow.ErrLost leaves all
// as it was.
func (a *activation) tellExit(ctx context.Context) error {
	if err := a.reports.Update(ctx, a.exitAd(ctx)); err != nil {
		return err
	}
	if err := a.stageOut(ctx); err != nil {
		return err
	}
	a.tearDown(ctx)
	return a.sayExited(ctx)
}

// Bounds of the tries to send the output when the connection for it breaks.
const (
	// sameShadow is how often the same shadow is asked again while its
	// connection for calls is well. It is all that helps: a shadow that loses
	// that one takes no files any more (remoteresource.cpp:disconnectClaimSock,
	// initFileTransfer), unless it is another one that comes back.
	sameShadow = 1
	// forcedDisconnects is how often both sides begin anew after that
	// (jic_shadow.cpp:transferOutputFinish).
	forcedDisconnects = 4
	// reapTime is what the shadow has to notice that its half of a transfer
	// ended. It dies if it is asked for the next one before, even if it has asked
	// for that itself: it does when its half tells it of the failure, a moment
	// before that ends (pseudo_ops.cpp:pseudo_request_guidance,
	// file_transfer.cpp:Upload).
	reapTime = 2 * time.Second
)

// retryOutput decides what follows a transfer that broke: nil to try again at
// once, shadow.ErrLost to wait for the shadow, and err when it is no use.
func (a *activation) retryOutput(ctx context.Context, err error) error {
	t := (*filetransfer.Error)(nil)
	if !errors.As(err, &t) || !t.TryAgain || a.submit.Lease() <= 0 {
		return err
	}
	switch {
	case !a.shadow.Broken() && a.files.repeated < sameShadow && t.PeerDone():
		a.files.repeated++
		a.log.Warn("The file transfer broke, it is tried again", "error", err)
		return submitside.Pause(ctx, reapTime)
	case a.files.forced < forcedDisconnects:
		a.files.forced++
		a.log.Warn("File transfer failed, forcing disconnect.", "error", err)
		a.shadow.Disconnect(err)
		return fmt.Errorf("%w: %w", shadow.ErrLost, err)
	}
	return err
}
