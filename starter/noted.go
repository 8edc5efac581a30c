package main

import (
	"context"
	"fmt"
	"time"

	"podstarter/sandbox/filetransfer"
)

// Attributes of the job's ad by which a shadow says that it is transferring
// (baseshadow.cpp:updateJobInQueue).
const (
	transferringInput  = "TransferringInput"
	transferringOutput = "TransferringOutput"
)

// half is the shadow's half of a transfer that is over here.
type half struct {
	attribute string
	shadow    <-chan struct{} // the connection of the shadow that had it, as Lost names it
}

// overHere remembers that the shadow has to note the end of a transfer.
func (a *activation) overHere(r *filetransfer.Result, attribute string) {
	if r.Met {
		a.files.half.Store(&half{attribute: attribute, shadow: a.shadow.Lost()})
	}
}

// notedTime is how long a shadow may take to note the end of its half. It takes
// one that has the processor a millisecond; one that saw its half killed never
// does.
const notedTime = 10 * time.Second

// awaitNoted returns when the shadow knows how its half of the last transfer
// ended. That half is a process, and what it tells the shadow counts when the
// shadow has heard of its end (file_transfer.cpp:Reap); its connection is closed
// before that, and calls come another way. A shadow that is told of a failure
// first is gone before it has written the event of the end, its time and the
// statistics (pseudo_ops.cpp:pseudo_ulog); one that is told of the job's exit
// waits, but says that the transfer never ended, and looks again after a second
// (remoteresource.cpp:resourceExit, attemptShutdown).
//
// The proof is the job's ad as the shadow has it: it says that files are
// transferred from the first word of that half, which the shadow reads before any
// call that is made now, until the end is noted. The whole ad is asked for, since
// a shadow gives single attributes only for jobs that want chirp
// (NTreceivers.cpp:do_REMOTE_syscall).
func (a *activation) awaitNoted(ctx context.Context) {
	h := a.files.half.Swap(nil)
	if h == nil || h.shadow != a.shadow.Lost() {
		return // there was none, or it is not this shadow's
	}
	ctx, cancel := context.WithTimeoutCause(ctx, notedTime, fmt.Errorf("it has not within %s", notedTime))
	defer cancel()
	for turn := time.Millisecond; ; turn = min(2*turn, longestTurn) {
		ad, err := a.shadow.GetJobInfo(uncut(ctx))
		if err != nil {
			a.log.Debug("The shadow cannot be asked about its file transfer", "error", err)
			return
		}
		if busy, err := ad.GetBool(h.attribute); err == nil && !busy {
			return
		}
		if turn == time.Millisecond {
			a.log.Debug("Waiting until the shadow has noted the end of its file transfer")
		}
		if err := pause(ctx, turn); err != nil {
			a.log.Warn("The shadow may not note the end of its file transfer", "error", err)
			return
		}
	}
}

// longestTurn is the longest time between two such questions.
const longestTurn = 100 * time.Millisecond
