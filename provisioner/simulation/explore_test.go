package simulation

import (
	"fmt"
	"os"
	"testing"
	"time"

	"podstarter/provisioner/decision"
)

func TestExplore(t *testing.T) {
	if os.Getenv("EXPLORE") == "" {
		t.Skip()
	}
	var rules []Rule
	for _, idle := range []int{20, 5} {
		i := time.Duration(idle) * time.Minute
		rules = append(rules, Original{fmt.Sprintf("orig i%d", idle), 20, i}, Original{fmt.Sprintf("origW i%d", idle), 1000, i})
		for _, h := range []int{0, 5, 10, 20, 40} {
			rules = append(rules, Ours{fmt.Sprintf("ours h%d i%d", h, idle), decision.Policy{Horizon: time.Duration(h) * time.Minute, Start: 2 * time.Minute, Settle: 3 * time.Minute}, i})
		}
	}
	for _, s := range Scenarios(1, Week) {
		if o := os.Getenv("ONLY"); o != "" && o != s.Name {
			continue
		}
		fmt.Printf("== %s: %d jobs\n", s.Name, len(s.Queue.Jobs))
		for _, r := range rules {
			t0 := time.Now()
			res := Run(s, r)
			f := res.Figures
			fmt.Printf("%-20s podh %7.0f cpuh %7.0f waste %7.0f (start %.0f empty %.0f beside %.0f) wait %6s p95 %7s done %d/%d made %d wd %d fail %d nothing %d calls c%d d%d l%d obj %d  (%s) %v\n", r.Name(), f.PodHours, f.CPUHours, f.Waste, f.Starting, f.Empty, f.Beside, f.Wait.Round(time.Second), f.Wait95.Round(time.Second), f.Finished, f.Submitted, f.Made, f.Withdrawn, f.Failed, f.ForNothing, f.Creates, f.Deletes, f.Lists, f.Objects, time.Since(t0).Round(time.Millisecond), res.Violations)
		}
	}
}
