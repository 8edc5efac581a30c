package filetransfer

import (
	"context"
	"fmt"
	"os"
	"time"
)

// stalledError ends a transfer that makes no progress although the peer is not
// silent, as one that sends a byte now and then.
type stalledError struct{ after time.Duration }

func (e *stalledError) Error() string {
	return fmt.Sprintf("no progress for %d seconds (STARTER_FILE_XFER_STALL_TIMEOUT)", int(e.after.Seconds()))
}

// Unwrap makes it a timeout to whoever asks.
func (e *stalledError) Unwrap() error { return os.ErrDeadlineExceeded }

// watchdog cancels a context when it is not stroked in time (src/
// condor_starter.V6.1/jic_shadow.cpp:verifyXferProgressing). The zero value
// never does.
type watchdog struct {
	timer *time.Timer
	after time.Duration
}

// watchProgress returns a context that ends when the watchdog is not stroked for
// so long; after <= 0 means never. The function releases what it holds.
func watchProgress(ctx context.Context, after time.Duration) (context.Context, watchdog, func()) {
	if after <= 0 {
		return ctx, watchdog{}, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := watchdog{after: after, timer: time.AfterFunc(after, func() { cancel(&stalledError{after}) })}
	return ctx, w, func() {
		w.timer.Stop()
		cancel(nil)
	}
}

// stroke says that there was progress. It may be called from anywhere.
func (w *watchdog) stroke() {
	if w.timer != nil {
		w.timer.Reset(w.after)
	}
}

// sleep stops the watchdog until the next stroke, for work with time limits of
// its own.
func (w *watchdog) sleep() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
