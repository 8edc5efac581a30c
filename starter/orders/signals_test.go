package orders

import (
	"context"
	"log/slog"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
)

// TestSignals: what each signal demands at once, and what follows when the time of a
// graceful end is over.
func TestSignals(t *testing.T) {
	const graceful = 10 * time.Minute
	type state struct {
		Demand              *Demand
		Hard, Cut           bool
		Suspended, Snapshot bool
		HardLater           bool
		CodeLater           int
	}
	soft := Demand{Urgency: Soft}
	for sig, want := range map[int]state{
		int(syscall.SIGTERM):  {Demand: &soft, HardLater: true, CodeLater: shadow.VacateJobShouldRequeue},
		cedar.DCSigSoftKill:   {Demand: &soft, HardLater: true, CodeLater: shadow.VacateJobShouldRequeue},
		Peaceful:              {Demand: &soft},
		int(syscall.SIGQUIT):  {Demand: &Demand{}, Hard: true, HardLater: true},
		int(syscall.SIGINT):   {Demand: &Demand{}, Hard: true, HardLater: true},
		cedar.DCSigHardKill:   {Demand: &Demand{}, Hard: true, HardLater: true},
		int(syscall.SIGUSR1):  {Demand: &Demand{Urgency: Soft, Remove: true}},
		cedar.DCSigRemove:     {Demand: &Demand{Urgency: Soft, Remove: true}},
		cedar.DCSigHold:       {Demand: &Demand{Urgency: Soft, Hold: true}},
		cedar.DCSigSuspend:    {Suspended: true},
		cedar.DCSigContinue:   {},
		cedar.DCSigPCkpt:      {Snapshot: true},
		int(syscall.SIGHUP):   {},
		int(syscall.SIGWINCH): {},
		0:                     {},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := New(slog.New(slog.DiscardHandler))
			o.Signal(ctx, sig, graceful)
			got := state{Demand: o.Ended(), Hard: !o.Allows(Hard), Cut: !o.Allows(Cut), Suspended: o.Suspended(), Snapshot: len(o.Checkpoints()) > 0}
			time.Sleep(graceful - time.Nanosecond)
			synctest.Wait()
			if early := !o.Allows(Hard); early != got.Hard {
				t.Errorf("signal %d: hard before the time is over: %v", sig, early)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			got.HardLater = !o.Allows(Hard)
			if d := o.Ended(); d != nil {
				got.CodeLater = d.Code
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("signal %d: %s", sig, diff)
			}
		})
	}
}

// TestCutIsHard: a demand that leaves no time for a transfer leaves none for the payload
// either.
func TestCutIsHard(t *testing.T) {
	o := New(slog.New(slog.DiscardHandler))
	o.End(Demand{Urgency: Cut})
	if o.Allows(Hard) || o.Allows(Cut) {
		t.Errorf("it allows the payload to live: %v, a transfer: %v", o.Allows(Hard), o.Allows(Cut))
	}
	select {
	case <-o.Hard():
	default:
		t.Error("those who wait for a hard demand do not hear of it")
	}
}
