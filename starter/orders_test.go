package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOrders(t *testing.T) {
	claim := ending{reason: "Claim deactivated", code: 1009, soft: true, ordered: true}
	hold := ending{reason: "Too big", code: 21, subcode: 3, soft: true, hold: true, ordered: true}
	tests := map[string]struct {
		ends []ending
		want ending
		hard bool
	}{
		"soft": {
			ends: []ending{claim},
			want: claim,
		},
		"soft, then hard: the startd's last words count": {
			ends: []ending{claim, {reason: "Schedd released the claim", code: 1017, ordered: true}},
			want: ending{reason: "Schedd released the claim", code: 1017, ordered: true},
			hard: true,
		},
		"hard, then soft: it stays hard": {
			ends: []ending{{reason: "Schedd released the claim", code: 1017, ordered: true}, claim},
			want: ending{reason: "Claim deactivated", code: 1009, ordered: true},
			hard: true,
		},
		"others' first words count": {
			ends: []ending{{reason: "first", code: 1007, soft: true}, {reason: "second", code: 1013, soft: true}},
			want: ending{reason: "first", code: 1007, soft: true},
		},
		"the startd's words after others'": {
			ends: []ending{{reason: "first", code: 1007, soft: true}, claim},
			want: claim,
		},
		"a hold after a vacate": {
			ends: []ending{claim, hold},
			want: hold,
		},
		"a hold stays one": {
			ends: []ending{hold, claim, {reason: "Schedd released the claim", code: 1017, ordered: true}},
			want: ending{reason: "Too big", code: 21, subcode: 3, hold: true, ordered: true},
			hard: true,
		},
		"removal by a signal is not forgotten": {
			ends: []ending{{soft: true, remove: true}, claim},
			want: ending{reason: "Claim deactivated", code: 1009, soft: true, remove: true, ordered: true},
		},
		"a signal without a reason gives way to words": {
			ends: []ending{{soft: true}, claim},
			want: claim,
		},
		"hard without a reason, then words": {
			ends: []ending{{}, claim},
			want: ending{reason: "Claim deactivated", code: 1009, ordered: true},
			hard: true,
		},
		"the cause comes after its effect": {
			ends: []ending{{reason: "Startd was shutdown", code: 1013, soft: true}, {reason: "The pod goes", code: 1013, soft: true, cause: true}},
			want: ending{reason: "The pod goes", code: 1013, soft: true, cause: true},
		},
		"and before": {
			ends: []ending{{reason: "The pod goes", code: 1013, soft: true, cause: true}, {reason: "Startd was shutdown", code: 1013, ordered: true}},
			want: ending{reason: "The pod goes", code: 1013, cause: true},
			hard: true,
		},
		"and is not that of something else": {
			ends: []ending{claim, {reason: "The pod goes", code: 1013, soft: true, cause: true}},
			want: claim,
		},
		"twice the same": {
			ends: []ending{claim, claim},
			want: claim,
		},
		"a lost shadow makes it hard": {
			ends: []ending{claim, {reason: "lost", lost: true}},
			want: ending{reason: "Claim deactivated", code: 1009, lost: true, ordered: true},
			hard: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := newOrders(slog.New(slog.DiscardHandler))
			for _, e := range tt.ends {
				o.end(e)
			}
			if diff := cmp.Diff(&tt.want, o.ended(), cmp.AllowUnexported(ending{})); diff != "" {
				t.Errorf("ended (-want +got):\n%s", diff)
			}
			if got := o.hardEnded(); got != tt.hard {
				t.Errorf("hardEnded = %v, want %v", got, tt.hard)
			}
		})
	}
}

func TestOrdersCancel(t *testing.T) {
	o := newOrders(slog.New(slog.DiscardHandler))
	any, release := o.cancelled(context.Background())
	defer release()
	fast, releaseFast := o.cancelledHard(context.Background())
	defer releaseFast()
	cut, releaseCut := o.cancelledCut(context.Background())
	defer releaseCut()

	o.end(ending{reason: "drained", soft: true})
	ended := func(what string, ctx context.Context) {
		t.Helper()
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Fatalf("%s did not cut short what it should", what)
		}
	}
	ended("a soft end", any)
	if err := context.Cause(any); !errors.Is(err, errEnded) {
		t.Errorf("cause of a soft end: %v, want one that is errEnded", err)
	}
	if err := fast.Err(); err != nil {
		t.Errorf("a soft end cut short what only a hard one may: %v", err)
	}
	o.end(ending{})
	ended("a hard end", fast)
	if err := cut.Err(); err != nil || o.wasCut() {
		t.Errorf("a transfer is cut short by the startd's order: %v", err)
	}
	o.end(ending{cut: true})
	ended("the end of all", cut)
	if !o.wasCut() {
		t.Error("that is not known")
	}
}

// TestAsk: the job is asked to end once in each manner, in the order in which the
// demands came.
func TestAsk(t *testing.T) {
	o := newOrders(slog.New(slog.DiscardHandler))
	for _, e := range []ending{
		{soft: true}, {soft: true}, {soft: true, hold: true, code: 21}, {reason: "x", code: 1009, soft: true},
		{soft: true, remove: true}, {}, {soft: true, hold: true, code: 3},
	} {
		o.end(e)
	}
	close(o.ask)
	var got []manner
	for m := range o.ask {
		got = append(got, m)
	}
	if diff := cmp.Diff([]manner{vacated, held, removed}, got); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestCheckpointOrder(t *testing.T) {
	o := newOrders(slog.New(slog.DiscardHandler))
	o.checkpoint()
	o.checkpoint()
	<-o.ckpt
	select {
	case <-o.ckpt:
		t.Error("two demands that nobody looked at are two")
	default:
	}
}

func TestSuspend(t *testing.T) {
	o := newOrders(slog.New(slog.DiscardHandler))
	changed := func() bool {
		select {
		case <-o.suspend:
			return true
		default:
			return false
		}
	}
	steps := []struct {
		suspended, changes bool
	}{{false, false}, {true, true}, {true, false}, {false, true}, {false, false}}
	for i, step := range steps {
		o.setSuspended(step.suspended)
		if got := changed(); got != step.changes {
			t.Errorf("step %d: setSuspended(%v) told of a change: %v, want %v", i, step.suspended, got, step.changes)
		}
		if o.isSuspended() != step.suspended {
			t.Errorf("step %d: isSuspended = %v", i, !step.suspended)
		}
	}
}
