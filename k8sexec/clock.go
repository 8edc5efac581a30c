package k8sexec

import (
	"context"
	"time"

	"podstarter/k8sexec/podwatch"
)

// clock is the time that a binding may take. It stands still while the kubelet is at
// another binding. It belongs to one goroutine.
type clock struct {
	timer *time.Timer
	left  time.Duration
	since time.Time // when it last began to run; zero while it stands still
}

// withClock gives a context that ends when the clock has run for so long, with
// podwatch.ErrTimeout as its cause.
func withClock(ctx context.Context, limit time.Duration) (context.Context, *clock, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &clock{left: limit, since: time.Now()}
	c.timer = time.AfterFunc(limit, func() { cancel(podwatch.ErrTimeout) })
	return ctx, c, func() {
		c.timer.Stop()
		cancel(nil)
	}
}

// run makes the clock go on, or stand still.
func (c *clock) run(on bool) {
	switch {
	case on && c.since.IsZero():
		c.since = time.Now()
		c.timer.Reset(c.left)
	case !on && !c.since.IsZero() && c.timer.Stop():
		c.left -= time.Since(c.since)
		c.since = time.Time{}
	}
}
