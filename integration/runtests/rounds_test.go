package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// TestNamesOfTests: each part of a step's -run begins the name of a test of its package. One that is renamed must not fall out of a step
// that passes with the others.
func TestNamesOfTests(t *testing.T) {
	lanes := slices.Concat(firstLane("pool"), secondLane("pool"), rulesLane("pool"), attacksLane("pool"), faultsLane("pool"), chaosLane("pool"),
		earlyLane("pool"), lateLane("pool"), failuresLane("pool"), podsLane("pool"), guestLane("pool", "/state"))
	looked := 0
	for _, s := range slices.Concat(lanes, slices.Concat(steps(roundsOf("pool"))...)) {
		run := slices.Index(s.argv, "-run")
		if run < 0 || !slices.Contains(s.argv, "-tags") || s.argv[slices.Index(s.argv, "-tags")+1] != "pool" {
			continue
		}
		pkg := s.argv[slices.IndexFunc(s.argv, func(word string) bool { return strings.HasPrefix(word, "./") })]
		files, err := filepath.Glob(filepath.Join("..", pkg, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no tests in %s: %v", s.name, pkg, err)
		}
		var names []string
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(text), -1) {
				names = append(names, m[1])
			}
		}
		pattern := strings.TrimSuffix(strings.TrimPrefix(s.argv[run+1], "^("), ")$")
		for part := range strings.SplitSeq(pattern, "|") {
			looked++
			if !slices.ContainsFunc(names, regexp.MustCompile("^(?:"+strings.TrimPrefix(part, "^")+")").MatchString) {
				t.Errorf("%s: no test of %s has a name that begins with %s", s.name, pkg, part)
			}
		}
	}
	if looked < 50 {
		t.Errorf("only %d names were looked at", looked)
	}
}
