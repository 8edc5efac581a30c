package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
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
	_, rest, found := strings.Cut(string(text), strings.SplitAfter(dayTable(results), "\n")[0])
	if !found {
		t.Fatalf("%s has no table of a day", name)
	}
	page, _, _ := strings.Cut(rest, "\n\n")
	_, now, _ := strings.Cut(dayTable(results), "\n")
	if why := differ(page, now); why != "" {
		t.Errorf("%s has other figures: %s; write it with: go run ./provisioner/simulate -docs docs/developer", name, why)
	}
}

// differ says where two tables differ by more than rounding does. Machines that
// multiply and add in one step (arm64) get other last digits, and so another row now
// and then.
func differ(page, now string) string {
	was, is := strings.Split(strings.TrimSpace(page), "\n"), strings.Split(strings.TrimSpace(now), "\n")
	if len(was) != len(is) {
		return fmt.Sprintf("%d rows instead of %d", len(was), len(is))
	}
	for i := range was {
		a, b := strings.Split(was[i], "|"), strings.Split(is[i], "|")
		for k := range max(len(a), len(b)) {
			if k >= len(a) || k >= len(b) || !alike(strings.TrimSpace(a[k]), strings.TrimSpace(b[k])) {
				return fmt.Sprintf("%q instead of %q", was[i], is[i])
			}
		}
	}
	return ""
}

// alike reports whether two cells are equal but for rounding: numbers by a hundredth
// or one, and times by as many seconds.
func alike(a, b string) bool {
	x, xIs := figure(a)
	y, yIs := figure(b)
	return a == b || xIs && yIs && math.Abs(x-y) <= max(1, max(x, y)/100)
}

func figure(cell string) (float64, bool) {
	minutes, seconds, isTime := strings.Cut(cell, ":")
	v, err := strconv.ParseFloat(minutes, 64)
	if !isTime || err != nil {
		return v, err == nil
	}
	s, err := strconv.ParseFloat(seconds, 64)
	return 60*v + s, err == nil
}

func TestDiffer(t *testing.T) {
	const page = "|---|---|\n| bursts | podstarter | 200 | 3:59 |"
	for now, want := range map[string]bool{
		page: false, strings.ReplaceAll(page, "200", "201"): false, strings.ReplaceAll(page, "3:59", "4:00"): false,
		strings.ReplaceAll(page, "200", "203"): true, strings.ReplaceAll(page, "3:59", "4:03"): true, strings.ReplaceAll(page, "bursts", "burst"): true,
		page + "\n| more | x | 1 | 1:00 |": true, strings.ReplaceAll(page, " 3:59 |", ""): true,
	} {
		if why := differ(page, now); (why != "") != want {
			t.Errorf("%q: %q", now, why)
		}
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
