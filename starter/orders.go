package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
)

// ending is one demand that the job end.
type ending struct {
	reason        string // for VacateReason; empty when nothing was said
	code, subcode int    // HTCondor's vacate or hold code, 0 when none
	hold          bool   // the job is to be put on hold with that code
	remove        bool   // RemoveKillSig is due, not KillSig
	soft          bool   // the job may end by itself after a signal
	lost          bool   // nobody is there any more to report to
	cause         bool   // the reason is why others with the same code were given
}

func (e ending) Error() string {
	if e.reason == "" {
		return "the startd asked for the end of the job"
	}
	return e.reason
}

// errEnded is in the chain of every error of a phase that was cut short by an
// order to end.
var errEnded = errors.New("ended by order")

// orders gathers what startd, shadow and signals demand of this activation, so
// that each phase need look in one place only. Demands may come twice and in
// any order (a startd continues a job twice, escalates soft to hard): the
// first reason stays, soft gives way to hard, hard stays.
type orders struct {
	log *slog.Logger

	mu        sync.Mutex
	first     *ending
	isHard    bool
	suspended bool

	soft    chan struct{} // closed by the first demand of any kind
	hard    chan struct{} // closed by the first demand that allows no delay
	suspend chan struct{} // buffered(1): suspended() changed
}

func newOrders(log *slog.Logger) *orders {
	return &orders{
		log:     log,
		soft:    make(chan struct{}),
		hard:    make(chan struct{}),
		suspend: make(chan struct{}, 1),
	}
}

// end records a demand to end. The reason of the first demand stays what is
// reported (starter.cpp:SetVacateReason), except that a demand without any
// reason gives way to one that has one, and an effect to its cause: that the
// pod goes says more than that the startd is told to end, which it is for that.
func (o *orders) end(e ending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.first == nil:
		o.first = &e
		close(o.soft)
	case o.first.reason == "" && e.reason != "", e.cause && !o.first.cause && o.first.code == e.code:
		soft, lost := o.first.soft, o.first.lost
		*o.first = e
		o.first.soft, o.first.lost = soft && e.soft, lost || e.lost
	}
	if e.lost {
		o.first.lost = true
	}
	if !e.soft && !o.isHard {
		o.isHard = true
		o.first.soft = false
		close(o.hard)
	}
	o.log.Info("Ordered to end the job", "reason", e.Error(), "code", e.code, "subcode", e.subcode, "soft", e.soft)
}

// ended is the demand to report, nil while there is none.
func (o *orders) ended() *ending {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.first == nil {
		return nil
	}
	e := *o.first
	return &e
}

// hardEnded says whether a demand without delay has come.
func (o *orders) hardEnded() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.isHard
}

// setSuspended records that the job shall be stopped or continued; repeating
// it changes nothing (a startd sends DC_SIGCONTINUE twice for every resume).
func (o *orders) setSuspended(suspended bool) {
	o.mu.Lock()
	changed := o.suspended != suspended
	o.suspended = suspended
	o.mu.Unlock()
	if changed {
		select {
		case o.suspend <- struct{}{}:
		default: // a change is already waiting to be looked at
		}
	}
}

func (o *orders) isSuspended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.suspended
}

// cancelled derives a context that ends with the first demand of any kind;
// what runs before the job does has nothing to finish.
func (o *orders) cancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	return untilClosed(ctx, o.soft, o.cause)
}

// cancelledHard derives a context that ends with the first demand that allows
// no delay.
func (o *orders) cancelledHard(ctx context.Context) (context.Context, context.CancelFunc) {
	return untilClosed(ctx, o.hard, o.cause)
}

func (o *orders) cause() error {
	return errors.Join(errEnded, *o.ended())
}

func untilClosed(ctx context.Context, closed <-chan struct{}, cause func() error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-closed:
			cancel(cause())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}
