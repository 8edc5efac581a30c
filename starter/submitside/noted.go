package submitside

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"podstarter/classads"
)

// Attributes of the job's ad by which a shadow says that it is transferring
// (baseshadow.cpp:updateJobInQueue).
const (
	TransferringInput  = "TransferringInput"
	TransferringOutput = "TransferringOutput"
)

// Half waits for the shadow to note the end of its half of a transfer.
type Half struct {
	shadow interface {
		Lost() <-chan struct{}
		GetJobInfo(ctx context.Context) (*classads.Ad, error)
	}
	log     *slog.Logger
	pending atomic.Pointer[half]
}

// half is a transfer that is over on this side.
type half struct {
	attribute string
	shadow    <-chan struct{} // the connection of the shadow that had it, as Lost names it
}

// NewHalf returns one with nothing pending.
func NewHalf(shadow interface {
	Lost() <-chan struct{}
	GetJobInfo(ctx context.Context) (*classads.Ad, error)
}, log *slog.Logger) *Half {
	return &Half{shadow: shadow, log: log}
}

// Over remembers that the shadow has to note the end of a transfer, which the
// attribute names.
func (h *Half) Over(attribute string) {
	h.pending.Store(&half{attribute: attribute, shadow: h.shadow.Lost()})
}

const (
	// notedTime is how long a shadow may take to note the end of its half. It takes a
	// millisecond when it has the processor; a shadow whose half was killed never
	// notes it.
	notedTime = 10 * time.Second
	// longestTurn is the longest time between two questions.
	longestTurn = 100 * time.Millisecond
)

// Await returns when the shadow knows how its half of the last transfer ended. That
// half is a process. The shadow uses its report only after reaping it
// (file_transfer.cpp:Reap). The half's connection closes before that, and calls use
// another one. A shadow that hears of a failure first leaves without having written
// the event of the end, its time and the statistics (pseudo_ops.cpp:pseudo_ulog). A
// shadow that hears of the job's exit first waits, but says that the transfer never
// ended, and looks again after a second (remoteresource.cpp:resourceExit,
// attemptShutdown).
//
// The proof is the shadow's copy of the job's ad. It says that files are transferred
// from the first report of that half, which the shadow reads before any call that is
// made now, until the end is noted. Await asks for the whole ad, since a shadow gives
// single attributes only for jobs that want chirp (NTreceivers.cpp:do_REMOTE_syscall).
func (h *Half) Await(ctx context.Context) {
	last := h.pending.Swap(nil)
	if last == nil || last.shadow != h.shadow.Lost() {
		return // there was none, or another shadow had it
	}
	ctx, cancel := context.WithTimeoutCause(ctx, notedTime, fmt.Errorf("it has not within %s", notedTime))
	defer cancel()
	for turn := time.Millisecond; ; turn = min(2*turn, longestTurn) {
		ad, err := h.shadow.GetJobInfo(context.WithoutCancel(ctx))
		if err != nil {
			h.log.Debug("The shadow cannot be asked about its file transfer", "error", err)
			return
		}
		if busy, err := ad.GetBool(last.attribute); err == nil && !busy {
			return
		}
		if turn == time.Millisecond {
			h.log.Debug("Waiting until the shadow has noted the end of its file transfer")
		}
		if err := Pause(ctx, turn); err != nil {
			h.log.Warn("The shadow may not note the end of its file transfer", "error", err)
			return
		}
	}
}

// Pause waits, or returns the reason why ctx ended.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
