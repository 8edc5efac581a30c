package main

import (
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
		a := activation{ad: ad, meter: meter{load: load{cores: 2, known: true}}}
		if got, known := a.percentLoad(); got != want || !known {
			t.Errorf("%q: %g, %t; want %g", text, got, known, want)
		}
	}
}
