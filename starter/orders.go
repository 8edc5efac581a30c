package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"podstarter/rescue"
)

// ending is one demand that the job end.
type ending struct {
	reason        string // for VacateReason; empty when nothing was said
	code, subcode int    // HTCondor's vacate or hold code, 0 when none
	hold          bool   // the job is to be put on hold with that code
	remove        bool   // RemoveKillSig is due, not KillSig
	soft          bool   // the job may end by itself after a signal
	ordered       bool   // in words by the startd, whose last words count
	lost          bool   // nobody is there any more to report to
	cause         bool   // the reason is why others with the same code were given
	cut           bool   // there is no time left for what is under way; implied by lost
}

func (e ending) Error() string {
	if e.reason == "" {
		return "the startd asked for the end of the job"
	}
	return e.reason
}

// manner is how a job is asked to end by itself; each has a signal of its own.
func (e ending) manner() manner {
	switch {
	case e.hold:
		return held
	case e.remove:
		return removed
	}
	return vacated
}

// manner is one way to ask a job to end by itself.
type manner int

const (
	vacated manner = iota
	removed
	held
	manners // how many there are
)

// errEnded is in the chain of every error of a phase that was cut short by an
// order to end.
var errEnded = errors.New("ended by order")

// orders gathers what startd, shadow and signals demand of this activation, so
// that each phase need look in one place only. Demands may come twice and in
// any order (a startd continues a job twice, escalates soft to hard): soft gives
// way to hard, hard stays.
type orders struct {
	log *slog.Logger

	mu        sync.Mutex
	told      *ending // what to report; nil while there is no demand
	isHard    bool
	isCut     bool
	asked     [manners]bool
	suspended bool

	soft    chan struct{} // closed by the first demand of any kind
	hard    chan struct{} // closed by the first demand that allows no delay
	cut     chan struct{} // closed by the first demand that leaves no time for a transfer
	ask     chan manner   // the job is to be asked to end, once in each manner
	suspend chan struct{} // buffered(1): suspended() changed
	ckpt    chan struct{} // buffered(1): a job that wants it is told to save a checkpoint
}

func newOrders(log *slog.Logger) *orders {
	return &orders{
		log:     log,
		soft:    make(chan struct{}),
		hard:    make(chan struct{}),
		cut:     make(chan struct{}),
		ask:     make(chan manner, manners),
		suspend: make(chan struct{}, 1),
		ckpt:    make(chan struct{}, 1),
	}
}

// end records a demand to end.
func (o *orders) end(e ending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept := e
	switch before := o.told; {
	case before == nil:
		o.told = &kept
		close(o.soft)
	case before.yields(e):
		o.told = &kept
		o.told.soft = before.soft && e.soft
		o.told.remove, o.told.lost = before.remove || e.remove, before.lost || e.lost
	default:
		o.told.remove, o.told.lost = before.remove || e.remove, before.lost || e.lost
	}
	if m := e.manner(); e.soft && !o.asked[m] {
		o.asked[m] = true
		o.ask <- m
	}
	if !e.soft && !o.isHard {
		o.isHard = true
		o.told.soft = false
		close(o.hard)
	}
	if (e.cut || e.lost) && !o.isCut {
		o.isCut = true
		close(o.cut)
	}
	o.log.Info("Ordered to end the job", "reason", e.Error(), "code", e.code, "subcode", e.subcode, "soft", e.soft)
}

// yields says whether a later demand is the one to report. The last words of the
// startd are (starter.cpp:remoteVacateCommand assigns them), and a hold, which the
// shadow hears of at once; of others the first are (SetVacateReason). A demand
// without any reason gives way to one that has one, and an effect to its cause:
// that the pod goes says more than that the startd is told to end, which it is
// for that.
func (e *ending) yields(later ending) bool {
	switch {
	case e.hold || later.hold:
		return !e.hold
	case later.reason == "":
		return false
	case e.reason == "":
		return true
	case later.cause:
		return !e.cause && e.code == later.code
	}
	return later.ordered && !e.cause
}

// checkpoint records a demand to save a checkpoint.
func (o *orders) checkpoint() {
	select {
	case o.ckpt <- struct{}{}:
	default: // one is waiting to be looked at
	}
}

// ended is the demand to report, nil while there is none.
func (o *orders) ended() *ending {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told == nil {
		return nil
	}
	e := *o.told
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

// cancelledCut derives a context that ends with the first demand that leaves no
// time for what is under way. The startd's demands are not among them: when its
// patience ends it kills the process.
func (o *orders) cancelledCut(ctx context.Context) (context.Context, context.CancelFunc) {
	return untilClosed(ctx, o.cut, o.cause)
}

// wasCut says whether such a demand has come.
func (o *orders) wasCut() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.isCut
}

func (o *orders) cause() error {
	return errors.Join(errEnded, *o.ended())
}

func untilClosed(ctx context.Context, closed <-chan struct{}, cause func() error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	rescue.Go(func() {
		select {
		case <-closed:
			cancel(cause())
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(context.Canceled) }
}
