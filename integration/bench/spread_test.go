package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

func TestSpread(t *testing.T) {
	var runs []harness.Run
	for _, ms := range []int{40, 10, 20, 90} {
		runs = append(runs, harness.Run{Phases: map[string]time.Duration{"bind": time.Duration(ms) * time.Millisecond}, PhaseOrder: []string{"bind"}})
	}
	bind := func(r harness.Run) time.Duration { return r.Phases["bind"] }
	want := spread{median: 30 * time.Millisecond, mean: 40 * time.Millisecond, least: 10 * time.Millisecond, most: 90 * time.Millisecond}
	if got := spreadOf(runs, bind); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := spreadOf(runs[:3], bind).median; got != 20*time.Millisecond {
		t.Errorf("median of three: %v, want 20ms", got)
	}
	if got := spreadOf(nil, bind); got != (spread{}) {
		t.Errorf("of nothing: %v", got)
	}
	if diff := cmp.Diff([]string{"bind", "exec"}, phases(append(runs, harness.Run{PhaseOrder: []string{"bind", "exec"}}))); diff != "" {
		t.Error(diff)
	}
}
