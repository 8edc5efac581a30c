package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

func TestSpread(t *testing.T) {
	series := func(ms ...int) []time.Duration {
		var all []time.Duration
		for _, n := range ms {
			all = append(all, time.Duration(n)*time.Millisecond)
		}
		return all
	}
	const ms = time.Millisecond
	tests := []struct {
		values []time.Duration
		want   spread
	}{
		{nil, spread{}},
		{series(7), spread{1, 7 * ms, 7 * ms, 7 * ms, 7 * ms}},
		{series(40, 10, 20, 90), spread{4, 10 * ms, 30 * ms, 90 * ms, 90 * ms}},
		{series(40, 10, 20), spread{3, 10 * ms, 20 * ms, 40 * ms, 40 * ms}},
		{series(10, 9, 8, 7, 6, 5, 4, 3, 2, 1), spread{10, 1 * ms, 5500 * time.Microsecond, 9 * ms, 10 * ms}},
	}
	for _, test := range tests {
		if got := spreadOf(test.values); got != test.want {
			t.Errorf("%v: got %v, want %v", test.values, got, test.want)
		}
	}
}

func TestPhases(t *testing.T) {
	runs := []harness.Run{{PhaseOrder: []string{"bind"}}, {PhaseOrder: []string{"bind", "exec"}}}
	if diff := cmp.Diff([]string{"bind", "exec"}, phases(runs)); diff != "" {
		t.Error(diff)
	}
}

// TestBetween: the time from the end of a process to the start of the next is
// read from the log of both starters, and so is whether they had the same image.
func TestBetween(t *testing.T) {
	at := func(ms int, text string) harness.Line {
		return harness.Line{Time: time.UnixMilli(int64(ms)), Text: text}
	}
	r := row{runs: []harness.Run{
		{Lines: []harness.Line{at(100, "Create_Process succeeded, pid=1"), at(110, "Process exited, pid=1, status=0"), at(120, "done")}},
		{Lines: []harness.Line{at(130, "STARTING UP"), at(310, "Create_Process succeeded, pid=2"), at(320, "Process exited, pid=2, status=0")}},
		{Lines: []harness.Line{at(1300, "Payload container runs image another"), at(1320, "Create_Process succeeded, pid=3"), at(1321, "Process exited, pid=3, status=0")}},
	}}
	got, err := r.between()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(turns{same: []time.Duration{200 * time.Millisecond}, other: []time.Duration{time.Second}}, got, cmp.AllowUnexported(turns{})); diff != "" {
		t.Error(diff)
	}
	r.runs[1].Lines = nil
	if _, err := r.between(); err == nil {
		t.Error("want an error for a job without a start")
	}
}
