package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

// TestOnNode: only jobs that began when another had run their image, or that ran before, count.
func TestOnNode(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 11, 1, 12, 0, s, 0, time.UTC) }
	run := func(image string, began, bound, started int) harness.Run {
		return harness.Run{Began: at(began), Lines: []harness.Line{
			{Time: at(bound), Text: "Payload container runs image " + image}, {Time: at(started), Text: "Create_Process succeeded, pid=1"},
		}}
	}
	starts, came := onNode([]harness.Run{
		run("a", 0, 10, 11),
		run("a", 5, 10, 13),   // its image was on its way
		run("a", 12, 14, 15),  // 3 s
		run("known", 1, 2, 8), // 7 s
		{Began: at(20)},       // it did not come so far
	}, map[string]bool{"known": true})
	if diff := cmp.Diff([]time.Duration{3 * time.Second, 7 * time.Second}, starts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]time.Time{"a": at(10), "known": at(2)}, came); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
