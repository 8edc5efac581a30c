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
	claim := ending{reason: "Claim deactivated", code: 1009, soft: true}
	tests := map[string]struct {
		ends []ending
		want ending
		hard bool
	}{
		"soft": {
			ends: []ending{claim},
			want: claim,
		},
		"soft, then hard: the reason stays": {
			ends: []ending{claim, {reason: "Schedd released the claim", code: 1017}},
			want: ending{reason: "Claim deactivated", code: 1009},
			hard: true,
		},
		"a signal without a reason gives way to words": {
			ends: []ending{{soft: true}, claim},
			want: claim,
		},
		"hard without a reason, then words": {
			ends: []ending{{}, claim},
			want: ending{reason: "Claim deactivated", code: 1009},
			hard: true,
		},
		"the cause comes after its effect": {
			ends: []ending{{reason: "Startd was shutdown", code: 1013, soft: true}, {reason: "The pod goes", code: 1013, soft: true, cause: true}},
			want: ending{reason: "The pod goes", code: 1013, soft: true, cause: true},
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
			want: ending{reason: "Claim deactivated", code: 1009, lost: true},
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
