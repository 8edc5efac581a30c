package backoff

import (
	"testing"
	"time"
)

var start = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)

func allowance(t *testing.T, s State, now time.Time, want int) {
	t.Helper()
	if got, why := s.Allowance(now); got != want {
		t.Errorf("at %s: %d pods may be on their way (%s), want %d", now.Format(time.TimeOnly), got, why, want)
	}
}

func TestNewTemplateIsTried(t *testing.T) {
	var s State
	allowance(t, s, start, Proof)
	s = s.Reported(start)
	allowance(t, s, start.Add(time.Hour), Unlimited)
	allowance(t, s, start.Add(Forget+time.Second), Proof)
}

func TestWaitsDouble(t *testing.T) {
	for reason, h := range Horizons {
		t.Run(string(reason), func(t *testing.T) {
			s, now, want := State{}.Reported(start), start, h.First
			for range 40 {
				s = s.Failed(reason, now)
				if got := s.Until.Sub(now); got != want {
					t.Fatalf("failure %d: the wait is %s, want %s", s.Failures, got, want)
				}
				allowance(t, s, s.Until.Add(-time.Second), 0)
				allowance(t, s, s.Until, 1)
				now, want = s.Until, min(2*want, h.Longest)
			}
			s = s.Reported(now)
			allowance(t, s, now, Unlimited)
		})
	}
}

// Pods that were made together are one failure.
func TestFailuresOfOneBatchCountOnce(t *testing.T) {
	s := State{}.Failed(Failed, start)
	for i := range 50 {
		s = s.Failed(Failed, start.Add(time.Duration(i)*time.Second))
	}
	if s.Failures != 1 || s.Until != start.Add(Horizons[Failed].First) {
		t.Errorf("50 pods that failed together count as %d failures, with a wait until %s", s.Failures, s.Until)
	}
}

// Another reason begins at its own first wait, and does not end the one that lasts.
func TestReasonsHaveTheirOwnHorizon(t *testing.T) {
	s := State{}.Failed(ImageFailed, start)
	s = s.Failed(Unschedulable, start.Add(time.Second))
	if want := start.Add(Horizons[ImageFailed].First); s.Until != want {
		t.Errorf("the wait is until %s, want %s", s.Until, want)
	}
	if s.Reason != Unschedulable || s.Failures != 1 {
		t.Errorf("the reason is %s with %d failures", s.Reason, s.Failures)
	}
}

// A site at which each pod fails costs a handful of pods an hour.
func TestBrokenSiteCostsAHandful(t *testing.T) {
	for reason := range Horizons {
		t.Run(string(reason), func(t *testing.T) {
			s, made := State{}, 0
			for now := start; now.Before(start.Add(8 * time.Hour)); now = now.Add(30 * time.Second) {
				if n, _ := s.Allowance(now); n > 0 {
					made += n
					s = s.Failed(reason, now)
				}
			}
			most := Proof + 8*int(time.Hour/Horizons[reason].Longest) + 8
			if made > most {
				t.Errorf("%d pods in 8 hours, want at most %d", made, most)
			}
			if made < 8 {
				t.Errorf("%d pods in 8 hours: nobody would notice that the site works again", made)
			}
		})
	}
}

func TestClockThatIsSetBack(t *testing.T) {
	s := State{}.Failed(Failed, start.Add(24*time.Hour))
	s = s.Settled(start)
	allowance(t, s, start.Add(Horizons[Failed].Longest), 1)
	s = State{}.Reported(start.Add(24 * time.Hour)).Settled(start)
	allowance(t, s, start.Add(Forget+time.Second), Proof)
}

// A template whose pods fail now for this and now for that reason is tried no more
// often than one whose pods always fail for the same.
func TestReasonsThatAlternate(t *testing.T) {
	s, made := State{}, 0
	for now := start; now.Before(start.Add(24 * time.Hour)); now = now.Add(30 * time.Second) {
		if n, _ := s.Allowance(now); n > 0 {
			made += n
			s = s.Failed([]Reason{Failed, ImageFailed}[made%2], now)
		}
	}
	if most := Proof + 24 + 16; made > most {
		t.Errorf("%d pods in a day, want at most %d", made, most)
	}
	if s = s.Reported(start); s != (State{LastReport: start}) {
		t.Errorf("after a report there is %+v", s)
	}
}

// Pods that were made together are one failure of each reason.
func TestBatchThatFailsForSeveralReasons(t *testing.T) {
	var s State
	for i := range 50 {
		s = s.Failed([]Reason{Failed, ImageFailed}[i%2], start.Add(time.Duration(i)*time.Second))
	}
	if want := start.Add(time.Second + Horizons[ImageFailed].First); s.Until != want {
		t.Errorf("the wait is until %s, want %s", s.Until, want)
	}
}

// Each reason has a series of its own.
func TestEachReasonHasASeries(t *testing.T) {
	seen := map[int]Reason{}
	for reason := range Horizons {
		if other, taken := seen[reason.number()]; taken {
			t.Errorf("%s and %s have the same series", reason, other)
		}
		seen[reason.number()] = reason
	}
	if len(seen) != len(reasons) {
		t.Errorf("%d series, and there are %d places", len(seen), len(reasons))
	}
}
