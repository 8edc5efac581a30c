package orders

import (
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
			o := New(log)
			o.TakeDown(t.Context(), payload.Notice{Reason: "The pod goes.", Left: tt.left})
			e := o.Ended()
			if e == nil || e.Reason != "The pod goes." || !shadow.ShouldVacate(e.Code, e.Subcode) || e.Hold || !o.Allows(Hard) != tt.hard {
				t.Errorf("%+v, hard %v", e, !o.Allows(Hard))
			}
		})
	}
	t.Run("time is up", func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		o := New(log)
		o.TakeDown(t.Context(), payload.Notice{Reason: "The pod goes.", Left: leastReserve + time.Millisecond})
		<-o.Hard()
		if e := o.Ended(); e.Reason != "The pod goes." || o.Allows(Cut) {
			t.Errorf("%+v; a transfer may go on: %v", e, o.Allows(Cut))
		}
	})
}
