package main

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"podstarter/condor/shadow"
	"podstarter/payload"
)

func TestSoftShare(t *testing.T) {
	for _, tt := range []struct{ left, want time.Duration }{
		{0, -time.Second},
		{time.Second, 0},
		{3 * time.Second, 2 * time.Second},
		{30 * time.Second, 20 * time.Second},
		{time.Hour, time.Hour - 20*time.Second},
	} {
		if got := softShare(tt.left); got != tt.want {
			t.Errorf("of %v the job has %v, want %v", tt.left, got, tt.want)
		}
	}
}

// A job whose pod goes is asked to end if there is time for that, and killed if
// there is none, and either way the first word is that of the pod.
func TestTakenDown(t *testing.T) {
	for _, tt := range []struct {
		name string
		left time.Duration
		hard bool // at once
	}{
		{"time enough", time.Hour, false},
		{"no time", 0, true},
		{"too little", time.Second / 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := slog.New(slog.DiscardHandler)
			a := &activation{orders: newOrders(log), log: log}
			a.takenDown(t.Context(), payload.Notice{Reason: "The pod goes.", Left: tt.left})
			e := a.orders.ended()
			if e == nil || e.reason != "The pod goes." || !shadow.ShouldVacate(e.code, e.subcode) || e.hold || a.orders.hardEnded() != tt.hard {
				t.Errorf("%+v, hard %v", e, a.orders.hardEnded())
			}
		})
	}
	t.Run("time is up", func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		a := &activation{orders: newOrders(log), log: log}
		a.takenDown(t.Context(), payload.Notice{Reason: "The pod goes.", Left: leastReserve + time.Millisecond})
		<-a.orders.hard
		if e := a.orders.ended(); e.reason != "The pod goes." {
			t.Errorf("%+v", e)
		}
	})
}

// goneContainer is a container of which only the loss is known.
type goneContainer struct {
	Container
	lost chan error
}

func (c goneContainer) Lost() <-chan error { return c.lost }

// The reason of a container's end comes after the end of its connection, and is
// waited for, unless there is an order that allows no delay.
func TestWhyLost(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	verdict := &payload.Verdict{Blame: payload.User, Reason: payload.ReasonOutOfMemory}
	gone := goneContainer{lost: make(chan error, 1)}
	a := &activation{orders: newOrders(log), log: log, container: gone}
	why := make(chan error, 1)
	go func() { why <- a.whyLost(t.Context(), payload.ErrLost) }()
	gone.lost <- verdict
	if err := <-why; !errors.Is(err, verdict) {
		t.Errorf("%v, want the verdict", err)
	}
	a.orders.end(ending{reason: "at once"})
	if err := a.whyLost(t.Context(), payload.ErrLost); !errors.Is(err, payload.ErrLost) {
		t.Errorf("%v, want what was known before", err)
	}
}
