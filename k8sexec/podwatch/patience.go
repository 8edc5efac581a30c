package podwatch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"podstarter/k8sexec/podapi"
)

// ErrTimeout is the cause of a binding's context when its time is over.
var ErrTimeout = errors.New("the binding took too long")

// patient repeats a call while the API server is away or overloaded, with a
// growing pause, for a bounded time. The call must be idempotent. The error is
// that of the last attempt, or the cause of ctx's end.
func (p *Pod) patient(ctx context.Context, what string, call func(context.Context) error) error {
	start := time.Now()
	pause := p.Times.Retry
	var last error
	for {
		attempt, cancel := context.WithTimeout(ctx, p.Times.Call)
		err := call(attempt)
		cancel()
		if err == nil {
			return nil
		}
		waited := time.Since(start)
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if ctx.Err() != nil {
			return endOf(ctx, waited, last)
		}
		if !podapi.IsPassing(err) {
			return err
		}
		if waited+pause > p.Times.Patience {
			return noSuccess(waited, err)
		}
		p.Log.Warn("the API server does not answer the call, will try again", "call", what, "pause", pause, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return endOf(ctx, time.Since(start), last)
		}
		// Not in step with the pod's other starters, which met the same trouble.
		pause = min(2*pause-rand.N(pause/2+1), p.Times.Call/2)
	}
}

func noSuccess(waited time.Duration, err error) error {
	return fmt.Errorf("no success in %s: %w", waited.Round(time.Second), err)
}

// endOf is the error of calls that were still failing when ctx ended. Their failure
// says more than that the binding took too long.
func endOf(ctx context.Context, waited time.Duration, last error) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, ErrTimeout) {
		return cause
	}
	if errors.Is(last, cause) {
		// The only attempt hung until the binding's time was over. Report that the API
		// server did not answer, not the timeout.
		last = errors.New(last.Error())
	}
	return noSuccess(waited, last)
}
