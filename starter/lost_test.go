package main

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"podstarter/classads"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/orders"
	"podstarter/starter/usage"
)

// TestUnknownIsNeverSuccess: whatever ended a payload container under its job,
// the job is given back or held. A call that would tell the shadow of an exit is
// reached without an error only.
func TestUnknownIsNeverSuccess(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	causes := []error{
		payload.ErrLost, errors.New("anything"), fmt.Errorf("wrapped: %w", payload.ErrNoRecord), errors.New(""),
	}
	for _, blame := range []payload.Blame{payload.Unknown, payload.User, payload.Site, payload.Pilot, payload.Blame(77)} {
		for _, reason := range []string{"", "Completed", "Evicted", "ContainerEnded", payload.ReasonOutOfMemory} {
			for subcode := range 3 {
				causes = append(causes, &payload.Verdict{Blame: blame, Reason: reason, Subcode: subcode, Message: "it is gone"})
			}
		}
	}
	for _, cause := range causes {
		for _, what := range []struct {
			name  string
			judge func(*activation, error) error
		}{
			{"lost while it ran", (*activation).lostContainer},
			{"binding", func(_ *activation, err error) error { return failure.OfBinding(err) }},
		} {
			a := &activation{orders: orders.New(log), log: log, ad: classads.NewAd(), meter: usage.NewMeter(usage.Knobs{}, log)}
			err := what.judge(a, cause)
			if err == nil {
				t.Fatalf("%s: %v is no error", what.name, cause)
			}
			f := failure.Of(err)
			v := (*payload.Verdict)(nil)
			isVerdict := errors.As(cause, &v)
			held := isVerdict && (v.Reason == payload.ReasonOutOfMemory && what.name != "binding" || v.Blame == payload.User && what.name == "binding")
			if f.Code == 0 || held == shadow.ShouldVacate(f.Code, f.Subcode) || f.Error() == "" && cause.Error() != "" {
				t.Errorf("%s: %v leads to %d/%d %q, held must be %v", what.name, cause, f.Code, f.Subcode, f, held)
			}
		}
		// Ordered to end before: the order's own reason counts, still without an exit.
		a := &activation{orders: orders.New(log), log: log, ad: classads.NewAd(), meter: usage.NewMeter(usage.Knobs{}, log)}
		a.orders.End(orders.Demand{Reason: "vacated", Code: shadow.VacateStartdVacateCommand})
		if err := a.lostContainer(cause); !errors.Is(err, orders.ErrEnded) {
			t.Errorf("%v after an order: %v", cause, err)
		}
	}
}

// TestRefusedScript: if the wrapper refuses to start a script because an earlier
// job left something in the container, the slot rests.
func TestRefusedScript(t *testing.T) {
	refused := &payload.RequestError{Op: payload.OpStart, Code: payload.CodeNotEmpty, Message: "m"}
	err := (&activation{}).insideFailure(t.Context(), refused)
	if blame, _ := failure.Blame(err, false); blame != payload.Site {
		t.Errorf("blame %v of %v, want the site", blame, err)
	}
}
