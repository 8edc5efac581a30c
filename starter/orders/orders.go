// Package orders gathers what startd, shadow, kernel and kubelet demand of an
// activation: that its job end, be suspended or continued, or save a checkpoint.
// Each phase of the job needs to look in one place only.
package orders

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"podstarter/rescue"
)

// ErrEnded is in the chain of every error of a phase that a demand cut short.
var ErrEnded = errors.New("ended by order")

// Orders are the demands so far. They may come twice and in any order (a startd
// continues a job twice, and escalates soft to hard): soft gives way to hard, and
// hard stays. All methods may be called by any goroutine.
type Orders struct {
	log *slog.Logger

	mu        sync.Mutex
	told      *Demand // what to report; nil while there is no demand
	urgent    [Cut + 1]bool
	asked     [manners]bool
	suspended bool

	// ends has the contexts that a demand of an urgency ends.
	ends [Cut + 1]map[context.Context]context.CancelCauseFunc

	hard    chan struct{} // closed by the first demand that allows no delay
	ask     chan Manner
	suspend chan struct{} // buffered(1)
	ckpt    chan struct{} // buffered(1)
}

// New returns no demands yet. It logs each that comes.
func New(log *slog.Logger) *Orders {
	return &Orders{
		log:     log,
		hard:    make(chan struct{}),
		ask:     make(chan Manner, manners),
		suspend: make(chan struct{}, 1),
		ckpt:    make(chan struct{}, 1),
	}
}

// Hard is closed by the first demand that allows no delay.
func (o *Orders) Hard() <-chan struct{} { return o.hard }

// Ask says how the job is to be asked to end by itself, once in each manner.
func (o *Orders) Ask() <-chan Manner { return o.ask }

// Suspension has a value when [Orders.Suspended] has changed.
func (o *Orders) Suspension() <-chan struct{} { return o.suspend }

// Checkpoints has a value when the job shall save a checkpoint.
func (o *Orders) Checkpoints() <-chan struct{} { return o.ckpt }

// End records a demand to end.
func (o *Orders) End(d Demand) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d.Lost {
		d.Urgency = Cut
	}
	before := o.told
	kept := d
	switch {
	case before == nil:
		o.told = &kept
	case before.yields(d):
		o.told = &kept
	}
	if before != nil {
		o.told.Remove, o.told.Lost = before.Remove || d.Remove, before.Lost || d.Lost
	}
	if m := d.manner(); d.Urgency == Soft && !o.asked[m] {
		o.asked[m] = true
		o.ask <- m
	}
	if d.Urgency != Soft && !o.urgent[Hard] {
		o.urgent[Hard] = true
		close(o.hard)
	}
	if d.Urgency == Cut {
		o.urgent[Cut] = true
	}
	o.told.Urgency = o.urgency()
	for u := range Cut + 1 {
		if o.reached(u) {
			for _, end := range o.ends[u] {
				end(o.cause())
			}
			o.ends[u] = nil
		}
	}
	o.log.Info(d.line(), "reason", d.Error(), "code", d.Code, "subcode", d.Subcode)
}

// reached says whether there is a demand of urgency u or above. The lock is held.
func (o *Orders) reached(u Urgency) bool {
	return o.told != nil && (u == Soft || o.urgent[u])
}

// cause is why a context ends: ErrEnded and the demand. The lock is held.
func (o *Orders) cause() error { return errors.Join(ErrEnded, *o.told) }

// urgency is that of all demands. The lock is held.
func (o *Orders) urgency() Urgency {
	switch {
	case o.urgent[Cut]:
		return Cut
	case o.urgent[Hard]:
		return Hard
	}
	return Soft
}

// Ended is the demand to report, with the urgency of all demands; nil while there
// is none.
func (o *Orders) Ended() *Demand {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told == nil {
		return nil
	}
	d := *o.told
	return &d
}

// Allows says whether the demands leave time for what is no longer possible with
// urgency u: Allows(Hard) is false once the payload must be killed, Allows(Cut)
// once a transfer must stop.
func (o *Orders) Allows(u Urgency) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.urgent[u]
}

// Checkpoint records a demand to save a checkpoint.
func (o *Orders) Checkpoint() {
	select {
	case o.ckpt <- struct{}{}:
	default: // one waits already
	}
}

// SetSuspended records that the job shall be stopped or continued; repeating it
// changes nothing (a startd sends DC_SIGCONTINUE twice for every resume).
func (o *Orders) SetSuspended(suspended bool) {
	o.mu.Lock()
	changed := o.suspended != suspended
	o.suspended = suspended
	o.mu.Unlock()
	if changed {
		select {
		case o.suspend <- struct{}{}:
		default: // a change waits already
		}
	}
}

// Suspended says whether the job shall be stopped.
func (o *Orders) Suspended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.suspended
}

// UntilAny derives a context that ends with the first demand of any kind: before
// the job runs it has nothing to finish.
func (o *Orders) UntilAny(ctx context.Context) (context.Context, context.CancelFunc) {
	return o.until(ctx, Soft)
}

// UntilHard derives a context that ends with the first demand that allows no delay.
func (o *Orders) UntilHard(ctx context.Context) (context.Context, context.CancelFunc) {
	return o.until(ctx, Hard)
}

// UntilCut derives a context that ends with the first demand that leaves no time for
// what is under way. The startd makes no such demand: when its patience ends it kills
// the process.
func (o *Orders) UntilCut(ctx context.Context) (context.Context, context.CancelFunc) {
	return o.until(ctx, Cut)
}

// until derives a context that has ended when End returns, with [Orders.cause].
func (o *Orders) until(ctx context.Context, u Urgency) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reached(u) {
		end(o.cause())
		return ctx, func() {}
	}
	if o.ends[u] == nil {
		o.ends[u] = make(map[context.Context]context.CancelCauseFunc)
	}
	o.ends[u][ctx] = end
	return ctx, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.ends[u], ctx)
		end(context.Canceled)
	}
}

// EndAfter makes a demand when a time has passed, unless ctx ends before.
func (o *Orders) EndAfter(ctx context.Context, wait time.Duration, d Demand) {
	rescue.Go(func() {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			o.End(d)
		case <-ctx.Done():
		}
	})
}
