package main

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"podstarter/provisioner/decision"
	"podstarter/provisioner/simulation"
)

//go:embed page.txt
var template string

// text writes the page.
func (p *page) text() string {
	var scenarios strings.Builder
	scenarios.WriteString("| scenario | jobs | what is in it |\n|---|---|---|\n")
	for _, s := range p.scenarios {
		fmt.Fprintf(&scenarios, "| %s | %d | %s |\n", s.Name, len(s.Queue.Jobs), s.What)
	}
	return strings.NewReplacer(
		"{{seed}}", fmt.Sprint(p.seed),
		"{{idle}}", fmt.Sprintf("%.0f minutes", decision.DefaultIdle.Minutes()),
		"{{scenarios}}", strings.TrimSuffix(scenarios.String(), "\n"),
		"{{tables}}", p.tables(),
		"{{day}}", strings.TrimSuffix(dayTable(oneDay()), "\n"),
	).Replace(template)
}

// short are the scenarios of which a day is run by the test.
var short = []string{"bursts", "three shapes", "unmatchable", "broken site", "all of it"}

// oneDay runs a day of these scenarios under the original and under our rule.
func oneDay() [][]simulation.Result {
	all := simulation.Scenarios(published, 24*time.Hour)
	var results [][]simulation.Result
	for _, name := range short {
		s, ok := simulation.Named(all, name)
		if !ok {
			panic("there is no scenario " + name)
		}
		results = append(results, []simulation.Result{simulation.Run(s, rules[0]), simulation.Run(s, rules[len(rules)-1])})
	}
	return results
}

func dayTable(results [][]simulation.Result) string {
	var b strings.Builder
	b.WriteString("| one day of | rule | CPU-hours wasted | wait, mean | pods made | failed | for unmatchable jobs |\n|---|---|---|---|---|---|---|\n")
	for _, both := range results {
		for _, r := range both {
			f := r.Figures
			fmt.Fprintf(&b, "| %s | %s | %.0f | %s | %d | %d | %d |\n", r.Scenario, r.Rule, f.Waste, clock(f.Wait), f.Made, f.Failed, f.ForNothing)
		}
	}
	return b.String()
}
