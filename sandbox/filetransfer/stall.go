package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// stalledError ends a transfer that makes no progress although the peer is not silent,
// for example because it sends a byte now and then.
type stalledError struct{ after time.Duration }

func (e *stalledError) Error() string {
	return fmt.Sprintf("no progress for %d seconds (STARTER_FILE_XFER_STALL_TIMEOUT)", int(e.after.Seconds()))
}

// Unwrap makes it a timeout for errors.Is.
func (e *stalledError) Unwrap() error { return os.ErrDeadlineExceeded }

// Stalled reports whether a transfer ended because it made no progress. The peer's half still waits for something then.
func Stalled(err error) bool {
	var e *stalledError
	return errors.As(err, &e)
}

// watchdog cancels a context if nobody calls stroke in time (src/
// condor_starter.V6.1/jic_shadow.cpp:verifyXferProgressing). The zero value never
// cancels.
type watchdog struct {
	timer *time.Timer
	after time.Duration
}

// watchProgress returns a context that ends if nobody calls stroke for this long; after
// <= 0 means never. The returned function releases its resources.
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

// stroke reports progress. Any goroutine may call it.
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
