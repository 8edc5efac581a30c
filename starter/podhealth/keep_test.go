package podhealth

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestKeep: a sick pod is checked at once and again until it is well, one that
// is well is not.
func TestKeep(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := Pod{StateDir: t.TempDir(), PublishDir: t.TempDir(), LongestRest: usual}
	checks := make(chan error)
	recheck := func(ctx context.Context) error {
		asked := false
		found, err := p.Recheck(func() error {
			asked = true
			select {
			case result := <-checks:
				return result
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if !asked {
			t.Error("checked a pod that is not sick")
		}
		return errors.Join(found, err)
	}
	done := make(chan error, 1)
	go func() { done <- keep(ctx, p, time.Millisecond, recheck, nil, slog.New(slog.DiscardHandler)) }()
	err := p.note(func(h Health, now time.Time) Health { return h.fellSick("x", now, usual) })
	if err != nil {
		t.Fatal(err)
	}
	checks <- errors.New("sick") // at once
	checks <- nil                // and again
	// Published by whoever comes first, the check or the loop.
	deadline := time.After(time.Minute)
	for {
		s, err := readPublished(p.PublishDir, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if until, _ := s.Health.offline(time.Now()); s.Health.Sick != nil && until.IsZero() {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("the pod did not heal: %+v", s)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestChecksBecomeRare, up to a limit: a pod that somebody has repaired is soon in service again.
func TestChecksBecomeRare(t *testing.T) {
	var got []time.Duration
	for pause := firstCheck; len(got) < 7; pause = longer(pause) {
		got = append(got, pause/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{5, 10, 20, 40, 60, 60, 60}, got); diff != "" {
		t.Errorf("seconds between checks (-want +got):\n%s", diff)
	}
}

// TestRecheck: a pod that is well is not checked, and a health that cannot be
// believed is an error.
func TestRecheck(t *testing.T) {
	p := Pod{StateDir: t.TempDir(), PublishDir: t.TempDir(), LongestRest: usual}
	never := func() error { t.Error("the pod was checked"); return nil }
	if found, err := p.Recheck(never); found != nil || err != nil {
		t.Errorf("a pod that is well: %v, %v", found, err)
	}
	p.StateDir += "/nothing"
	if _, err := p.Recheck(never); err == nil {
		t.Error("no error without a state directory")
	}
}
