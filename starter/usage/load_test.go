package usage

import (
	"errors"
	"math"
	"testing"
	"time"

	"podstarter/classads"
)

func TestLoad(t *testing.T) {
	var l load
	start := time.Unix(1000, 0)
	for _, step := range []struct {
		after, cpu time.Duration
		cores      float64
		known      bool
	}{
		{0, time.Second, 0, false},
		{500 * time.Millisecond, 2 * time.Second, 0, false}, // too close to tell
		{2 * time.Second, 4 * time.Second, 1.5, true},
		{4 * time.Second, 4 * time.Second, 0, true},
		{6 * time.Second, 3 * time.Second, 0, true}, // never below nothing
		{8 * time.Second, 7 * time.Second, 2, true},
	} {
		l.see(start.Add(step.after), step.cpu)
		if l.known != step.known || math.Abs(l.cores-step.cores) > 1e-9 {
			t.Errorf("after %s: %g cores, known %t; want %g, %t", step.after, l.cores, l.known, step.cores, step.known)
		}
	}
}

func TestPercentLoad(t *testing.T) {
	for text, want := range map[string]float64{
		"RequestCpus = 4": 50, "": 200, "RequestCpus = 4\nJobVM_VCPUS = 2": 100, "RequestCpus = 0": 200,
	} {
		ad, err := classads.ParseOld(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := PercentLoad(2, ad); got != want {
			t.Errorf("%q: %g; want %g", text, got, want)
		}
	}
}

// TestLoadReport: the startd is told of changes by a percent, and of the end if it
// knows of a load.
func TestLoadReport(t *testing.T) {
	var r LoadReport
	refused := errors.New("the startd does not answer")
	ended := func() bool {
		ad := classads.NewAd()
		r.AddEnd(ad)
		if !ad.Has(attrLoad) {
			return false
		}
		if load := ad.RealOr(attrLoad, -1); load != 0 {
			t.Errorf("the load after the end is %g", load)
		}
		return true
	}
	if ended() {
		t.Error("the end of a load that nobody was told of was told")
	}
	for _, step := range []struct {
		percent float64
		refused error
		told    bool
		ended   bool
	}{
		{percent: 0.5},
		{percent: 50, refused: refused, told: true},
		{percent: 50, told: true, ended: true},
		{percent: 50.9, ended: true},
		{percent: 51, told: true, ended: true},
		{percent: 49.9, told: true, ended: true},
		{percent: 0, told: true},
	} {
		told := false
		err := r.Tell(step.percent, func(ad *classads.Ad) error {
			told = true
			if got := ad.RealOr(attrLoad, -1); got != step.percent {
				t.Errorf("told %g, want %g", got, step.percent)
			}
			return step.refused
		})
		if told != step.told || !errors.Is(err, step.refused) || ended() != step.ended {
			t.Errorf("%g percent: told %t, %v; the end is told: %t; want %+v", step.percent, told, err, ended(), step)
		}
	}
}
