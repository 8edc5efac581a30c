package main

import (
	"errors"
	"log/slog"
	"testing"

	"podstarter/payload"
	"podstarter/starter/orders"
)

// goneContainer is a container of which only the loss is known.
type goneContainer struct {
	payload.Container
	lost chan error
}

func (c goneContainer) Lost() <-chan error { return c.lost }

// The reason of a container's end comes after the end of its connection, and is
// waited for, unless there is an order that allows no delay.
func TestWhyLost(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	verdict := &payload.Verdict{Blame: payload.User, Reason: payload.ReasonOutOfMemory}
	gone := goneContainer{lost: make(chan error, 1)}
	a := &activation{orders: orders.New(log), log: log, container: gone}
	why := make(chan error, 1)
	go func() { why <- a.whyLost(t.Context(), payload.ErrLost) }()
	gone.lost <- verdict
	if err := <-why; !errors.Is(err, verdict) {
		t.Errorf("%v, want the verdict", err)
	}
	a.orders.End(orders.Demand{Reason: "at once"})
	if err := a.whyLost(t.Context(), payload.ErrLost); !errors.Is(err, payload.ErrLost) {
		t.Errorf("%v, want what was known before", err)
	}
}
