package main

import (
	"regexp"
	"slices"
	"testing"

	"podstarter/integration/conformance"
	"podstarter/integration/harness"
	"podstarter/integration/turn"
)

// TestRoundsOfOtherPoolsHaveCases: a subject that is renamed must not leave a round without cases.
func TestRoundsOfOtherPoolsHaveCases(t *testing.T) {
	const enough = 100
	for name, change := range map[string]func(*harness.Kind){
		"cases in unshared mode":         func(k *harness.Kind) { k.Mode = harness.Unshared },
		"cases in rootless mode":         func(k *harness.Kind) { k.Mode, k.OneSlot = harness.Rootless, true },
		"cases with partitionable slots": func(k *harness.Kind) { k.Partitionable = true },
	} {
		kind := conformance.Newest
		change(&kind)
		all := roundsOf("pool")
		i := slices.IndexFunc(all, func(r round) bool { return r.name == name })
		if i < 0 {
			t.Errorf("there is no round %q", name)
			continue
		}
		argv := all[i].steps[1].argv
		pattern := regexp.MustCompile(argv[slices.Index(argv, "-case")+1])
		stock := func(s harness.Side) bool { return s == harness.Stock }
		picked, err := conformance.Pick(conformance.Subjects(), kind, stock, pattern, turn.None)
		if err != nil || len(picked.Cases) < enough {
			t.Errorf("%s: %d cases, want %d at least: %v", name, len(picked.Cases), enough, err)
		}
		t.Logf("%s: %d cases", name, len(picked.Cases))
	}
}
