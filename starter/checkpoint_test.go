package main

import (
	"testing"

	"podstarter/payload"
)

// TestRunNames: each run of an activation has a name of its own, by which its
// exit record is looked for.
func TestRunNames(t *testing.T) {
	a, seen := &activation{name: "slot1-7-abc"}, map[string]bool{}
	for range 3 {
		name := a.runName()
		if seen[name] || !payload.ValidActivation(name) {
			t.Errorf("run %d is called %q", a.runs, name)
		}
		seen[name] = true
		a.runs++
	}
}
