package orders

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOrders(t *testing.T) {
	claim := Demand{Reason: "Claim deactivated", Code: 1009, Urgency: Soft, Source: Startd}
	hold := Demand{Reason: "Too big", Code: 21, Subcode: 3, Hold: true, Urgency: Soft, Source: Startd}
	tests := map[string]struct {
		ends []Demand
		want Demand
		hard bool
	}{
		"soft": {
			ends: []Demand{claim},
			want: claim,
		},
		"soft, then hard: the startd's last words count": {
			ends: []Demand{claim, {Reason: "Schedd released the claim", Code: 1017, Source: Startd}},
			want: Demand{Reason: "Schedd released the claim", Code: 1017, Source: Startd},
			hard: true,
		},
		"hard, then soft: it stays hard": {
			ends: []Demand{{Reason: "Schedd released the claim", Code: 1017, Source: Startd}, claim},
			want: Demand{Reason: "Claim deactivated", Code: 1009, Source: Startd},
			hard: true,
		},
		"others' first words count": {
			ends: []Demand{{Reason: "first", Code: 1007, Urgency: Soft}, {Reason: "second", Code: 1013, Urgency: Soft}},
			want: Demand{Reason: "first", Code: 1007, Urgency: Soft},
		},
		"the startd's words after others'": {
			ends: []Demand{{Reason: "first", Code: 1007, Urgency: Soft}, claim},
			want: claim,
		},
		"a hold after a vacate": {
			ends: []Demand{claim, hold},
			want: hold,
		},
		"a hold stays one": {
			ends: []Demand{hold, claim, {Reason: "Schedd released the claim", Code: 1017, Source: Startd}},
			want: Demand{Reason: "Too big", Code: 21, Subcode: 3, Hold: true, Source: Startd},
			hard: true,
		},
		"removal by a signal is not forgotten": {
			ends: []Demand{{Remove: true, Urgency: Soft}, claim},
			want: Demand{Reason: "Claim deactivated", Code: 1009, Remove: true, Urgency: Soft, Source: Startd},
		},
		"a signal without a reason gives way to words": {
			ends: []Demand{{Urgency: Soft}, claim},
			want: claim,
		},
		"hard without a reason, then words": {
			ends: []Demand{{}, claim},
			want: Demand{Reason: "Claim deactivated", Code: 1009, Source: Startd},
			hard: true,
		},
		"the cause comes after its effect": {
			ends: []Demand{{Reason: "Startd was shutdown", Code: 1013, Urgency: Soft}, {Reason: "The pod goes", Code: 1013, Urgency: Soft, Source: Pod}},
			want: Demand{Reason: "The pod goes", Code: 1013, Urgency: Soft, Source: Pod},
		},
		"and before": {
			ends: []Demand{{Reason: "The pod goes", Code: 1013, Urgency: Soft, Source: Pod}, {Reason: "Startd was shutdown", Code: 1013, Source: Startd}},
			want: Demand{Reason: "The pod goes", Code: 1013, Source: Pod},
			hard: true,
		},
		"and is not that of something else": {
			ends: []Demand{claim, {Reason: "The pod goes", Code: 1013, Urgency: Soft, Source: Pod}},
			want: claim,
		},
		"twice the same": {
			ends: []Demand{claim, claim},
			want: claim,
		},
		"a lost shadow makes it hard": {
			ends: []Demand{claim, {Reason: "lost", Lost: true}},
			want: Demand{Reason: "Claim deactivated", Code: 1009, Lost: true, Urgency: Cut, Source: Startd},
			hard: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := New(slog.New(slog.DiscardHandler))
			for _, e := range tt.ends {
				o.End(e)
			}
			if diff := cmp.Diff(&tt.want, o.Ended()); diff != "" {
				t.Errorf("ended (-want +got):\n%s", diff)
			}
			if got := !o.Allows(Hard); got != tt.hard {
				t.Errorf("hardEnded = %v, want %v", got, tt.hard)
			}
		})
	}
}

func TestOrdersCancel(t *testing.T) {
	o := New(slog.New(slog.DiscardHandler))
	any, release := o.UntilAny(context.Background())
	defer release()
	fast, releaseFast := o.UntilHard(context.Background())
	defer releaseFast()
	cut, releaseCut := o.UntilCut(context.Background())
	defer releaseCut()

	o.End(Demand{Reason: "drained", Urgency: Soft})
	ended := func(what string, ctx context.Context) {
		t.Helper()
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Fatalf("%s did not cut short what it should", what)
		}
	}
	ended("a soft end", any)
	if err := context.Cause(any); !errors.Is(err, ErrEnded) {
		t.Errorf("cause of a soft end: %v, want one that is ErrEnded", err)
	}
	if err := fast.Err(); err != nil {
		t.Errorf("a soft end cut short what only a hard one may: %v", err)
	}
	o.End(Demand{})
	ended("a hard end", fast)
	if err := cut.Err(); err != nil || !o.Allows(Cut) {
		t.Errorf("a transfer is cut short by the startd's order: %v", err)
	}
	o.End(Demand{Urgency: Cut})
	ended("the end of all", cut)
	if o.Allows(Cut) {
		t.Error("that is not known")
	}
}

// TestAsk: the job is asked to end once in each manner, in the order in which the
// demands came.
func TestAsk(t *testing.T) {
	o := New(slog.New(slog.DiscardHandler))
	for _, e := range []Demand{
		{Urgency: Soft}, {Urgency: Soft}, {Hold: true, Code: 21, Urgency: Soft}, {Reason: "x", Code: 1009, Urgency: Soft},
		{Remove: true, Urgency: Soft}, {}, {Hold: true, Code: 3, Urgency: Soft},
	} {
		o.End(e)
	}
	close(o.ask)
	var got []Manner
	for m := range o.ask {
		got = append(got, m)
	}
	if diff := cmp.Diff([]Manner{Vacated, Held, Removed}, got); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestCheckpointOrder(t *testing.T) {
	o := New(slog.New(slog.DiscardHandler))
	o.Checkpoint()
	o.Checkpoint()
	<-o.ckpt
	select {
	case <-o.ckpt:
		t.Error("two demands that nobody looked at are two")
	default:
	}
}

func TestSuspend(t *testing.T) {
	o := New(slog.New(slog.DiscardHandler))
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
		o.SetSuspended(step.suspended)
		if got := changed(); got != step.changes {
			t.Errorf("step %d: setSuspended(%v) told of a change: %v, want %v", i, step.suspended, got, step.changes)
		}
		if o.Suspended() != step.suspended {
			t.Errorf("step %d: isSuspended = %v", i, !step.suspended)
		}
	}
}

// A context that a demand ends has ended when End returns: no step begins after it.
func TestEndedAtOnce(t *testing.T) {
	for _, tt := range []struct {
		urgency        Urgency
		any, hard, cut bool // whether the contexts end
	}{{Soft, true, false, false}, {Hard, true, true, false}, {Cut, true, true, true}} {
		for _, late := range []bool{false, true} {
			o := New(slog.New(slog.DiscardHandler))
			demand := func() { o.End(Demand{Reason: "enough", Urgency: tt.urgency}) }
			if late {
				demand()
			}
			anyOf, endAny := o.UntilAny(t.Context())
			hard, endHard := o.UntilHard(t.Context())
			cut, endCut := o.UntilCut(t.Context())
			if !late {
				demand()
			}
			for name, c := range map[string]struct {
				ctx  context.Context
				ends bool
			}{"any": {anyOf, tt.any}, "hard": {hard, tt.hard}, "cut": {cut, tt.cut}} {
				if ended := errors.Is(context.Cause(c.ctx), ErrEnded); ended != c.ends {
					t.Errorf("urgency %v, late %t, until %s: ended is %t: %v", tt.urgency, late, name, ended, context.Cause(c.ctx))
				}
			}
			endAny()
			endHard()
			endCut()
		}
	}
}

// TestMayBeThePods: the API server is asked about the end of the pod only where that would be the reason to report.
func TestMayBeThePods(t *testing.T) {
	for name, tt := range map[string]struct {
		demand Demand
		want   bool
	}{
		"the startd shuts down":     {Demand{Reason: "Startd was shutdown", Code: 1013, Source: Startd, Urgency: Soft}, true},
		"a signal says nothing":     {Demand{Urgency: Soft}, true},
		"it is known already":       {Demand{Reason: "The pod goes", Code: 1013, Source: Pod}, false},
		"the claim is taken away":   {Demand{Reason: "Claim preempted", Code: 1011, Source: Startd}, false},
		"the job is held":           {Demand{Hold: true}, false},
		"the job is removed":        {Demand{Remove: true}, false},
		"nobody is left to hear it": {Demand{Lost: true}, false},
	} {
		if got := tt.demand.MayBeThePods(); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}
