package main

import (
	"os"
	"strings"
	"testing"

	"podstarter/provisioner/simulation"
)

// A day of the scenarios: the aim is met, promises are kept, and the page has the
// same figures.
func TestDay(t *testing.T) {
	results := oneDay()
	t.Logf("\n%s", dayTable(results))
	for _, both := range results {
		original, ours := both[0].Figures, both[1].Figures
		name := both[1].Scenario
		if 2*ours.Waste > original.Waste {
			t.Errorf("%s: %.0f CPU-hours are wasted, more than half of the original's %.0f", name, ours.Waste, original.Waste)
		}
		// Beside unmatchable jobs, the original has idle pods all the time.
		if ours.Wait > original.Wait && name != "unmatchable" {
			t.Errorf("%s: jobs wait for %s, with the original for %s", name, ours.Wait, original.Wait)
		}
		if ours.ForNothing > 0 {
			t.Errorf("%s: %d pods were made for jobs that match nothing", name, ours.ForNothing)
		}
		if name == "broken site" && ours.Failed > 5*24 {
			t.Errorf("%d pods failed in a day", ours.Failed)
		}
		if ours.Submitted == 0 || ours.Made == 0 || original.Made == 0 {
			t.Errorf("%s: nothing happened: %+v", name, ours)
		}
		for _, r := range both {
			if len(r.Violations) > 0 {
				t.Errorf("%s, %s: broken promises: %q", name, r.Rule, r.Violations)
			}
		}
	}
	const name = "../../docs/developer/provisioner-simulation.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), dayTable(results)) {
		t.Errorf("%s has other figures; write it with: go run ./provisioner/simulate -docs docs/developer", name)
	}
}

// A site's own queue gives the same tables.
func TestRecordedQueue(t *testing.T) {
	name := t.TempDir() + "/jobs.csv"
	lines := strings.Join(simulation.Columns, ",") + "\n" + strings.Repeat("5,600,1,2048,1000,0,a,ann,plain\n", 20) + "50,60,1,2048,1000,0,b,ben,\n"
	if err := os.WriteFile(name, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(&out, "", name, 3, 1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| jobs.csv | podstarter |", "20 of 20", "No promise was broken"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if err := run(&out, "", name, 0, 1); err == nil {
		t.Error("a site without nodes is accepted")
	}
	if err := run(&out, "", name+"x", 1, 1); err == nil {
		t.Error("a file that is not there is accepted")
	}
}
