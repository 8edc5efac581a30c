package submitside

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
)

// hearing notes what shadow and startd are told, in its order.
type hearing struct {
	asked
	deaf  error // of the shadow
	heard []string
}

func (h *hearing) note(format string, args ...any) {
	h.heard = append(h.heard, fmt.Sprintf(format, args...))
}

func (h *hearing) GetJobInfo(ctx context.Context) (*classads.Ad, error) {
	h.note("shadow is asked")
	return h.asked.GetJobInfo(ctx)
}

func (h *hearing) RegisterJobInfo(_ context.Context, ad *classads.Ad) error {
	h.note("shadow: %d", ad.IntOr("N", -1))
	return h.deaf
}

func (h *hearing) ReportError(_ context.Context, e shadow.RemoteError) error {
	h.note("shadow: error %q", e.Message)
	return h.deaf
}

func (h *hearing) EventNotification(context.Context, *classads.Ad) (int, error) { return 0, h.deaf }

func (h *hearing) LogGeneric(ctx context.Context, text string) error {
	if ctx.Err() != nil {
		h.note("shadow: half a message")
	}
	h.note("shadow: event log %q", text)
	return h.deaf
}

// startdOf is the startd beside it.
type startdOf struct{ *hearing }

func (s startdOf) Update(ctx context.Context, ad *classads.Ad) error {
	if ctx.Err() != nil {
		s.note("startd: half a message")
	}
	s.note("startd: %d, disconnected %v", ad.IntOr("N", -1), ad.BoolOr("STARTER_DISCONNECTED_FROM_SUBMIT_NODE", false))
	return nil
}

func (s startdOf) FinalUpdate(ctx context.Context, ad *classads.Ad) error {
	if ctx.Err() != nil {
		s.note("startd: half a message")
	}
	s.note("startd: final %d", ad.IntOr("N", -1))
	return nil
}

func reportsTo(h *hearing) *Reports {
	log := slog.New(slog.DiscardHandler)
	h.lost = make(chan struct{})
	return NewReports(ReportsTo{
		Shadow: h, Startd: startdOf{h}, Half: NewHalf(h, log), Address: cedar.Sinful{Host: "127.0.0.1", Port: 7}, Log: log,
		GiveBack:   func(ad *classads.Ad) { h.note("given back: %d", ad.IntOr("N", -1)) },
		StartdOnly: func(*classads.Ad) {},
	})
}

func numbered(n int64) *classads.Ad {
	ad := classads.NewAd()
	ad.SetInt("N", n)
	return ad
}

// TestUpdate: what the shadow did not hear is kept for the next update, and the startd
// hears of it in either case. Only its loss is an error.
func TestUpdate(t *testing.T) {
	lost := fmt.Errorf("call: %w", shadow.ErrLost)
	for name, tt := range map[string]struct {
		deaf error
		want []string
	}{
		"heard":   {nil, []string{"shadow: 1", "startd: 1, disconnected false"}},
		"lost":    {lost, []string{"shadow: 1", "given back: 1", "startd: 1, disconnected true"}},
		"refused": {errors.New("no"), []string{"shadow: 1", "given back: 1", "startd: 1, disconnected true"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hearing{deaf: tt.deaf}
			err := reportsTo(h).Update(t.Context(), numbered(1))
			if errors.Is(err, shadow.ErrLost) != errors.Is(tt.deaf, shadow.ErrLost) || err != nil && !errors.Is(err, shadow.ErrLost) {
				t.Error(err)
			}
			if diff := cmp.Diff(tt.want, h.heard); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFinalIsSaidOnce: what comes after it means another job to the startd.
func TestFinalIsSaidOnce(t *testing.T) {
	h := &hearing{}
	r := reportsTo(h)
	r.Final(t.Context(), numbered(1))
	r.Final(t.Context(), numbered(2))
	if diff := cmp.Diff([]string{"startd: final 1"}, h.heard); diff != "" {
		t.Error(diff)
	}
}

// TestHold: the shadow hangs up after it has heard of a hold, and not before.
func TestHold(t *testing.T) {
	h := &hearing{deaf: errors.New("no connection")}
	r := reportsTo(h)
	if err := r.Hold(t.Context(), shadow.RemoteError{Message: "first"}); !errors.Is(err, h.deaf) || r.Held() {
		t.Errorf("%v, held: %v", err, r.Held())
	}
	h.deaf = nil
	for _, message := range []string{"second", "third"} {
		if err := r.Hold(t.Context(), shadow.RemoteError{Message: message}); err != nil || !r.Held() {
			t.Errorf("%v, held: %v", err, r.Held())
		}
	}
	r.Final(t.Context(), numbered(1))
	if !r.Held() {
		t.Error("the hold is forgotten with the final update")
	}
	if diff := cmp.Diff([]string{`shadow: error "first"`, `shadow: error "second"`, "startd: final 1"}, h.heard); diff != "" {
		t.Error(diff)
	}
}

// TestErrorWaitsForTheTransfer: a shadow that hears of an error before its half of the
// transfer has ended forgets that half.
func TestErrorWaitsForTheTransfer(t *testing.T) {
	h := &hearing{asked: asked{answers: []string{TransferringOutput + " = true", TransferringOutput + " = false"}}}
	r := reportsTo(h)
	r.to.Half.Over(TransferringOutput)
	if err := r.Error(t.Context(), shadow.RemoteError{Message: "x"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"shadow is asked", "shadow is asked", `shadow: error "x"`}, h.heard); diff != "" {
		t.Error(diff)
	}
}

// TestNothingIsCutShort: an order that ends what is under way does not end an update of it.
func TestNothingIsCutShort(t *testing.T) {
	h := &hearing{}
	r := reportsTo(h)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Update(ctx, classads.NewAd()); err != nil {
		t.Error(err)
	}
	r.TellStartd(ctx, classads.NewAd())
	r.Final(ctx, classads.NewAd())
	want := []string{"shadow: -1", "startd: -1, disconnected false", "startd: -1, disconnected true", "startd: final -1"}
	if diff := cmp.Diff(want, h.heard); diff != "" {
		t.Error(diff)
	}
}
