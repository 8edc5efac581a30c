package main

import (
	"fmt"
	"strings"
	"time"

	"podstarter/provisioner/decision"
	"podstarter/provisioner/simulation"
	"podstarter/provisioner/simulation/chart"
)

// published is the seed of the page.
const published = 1

// rules of the main table: the original with its defaults and with a limit that
// does not bind, and ours.
var rules = []simulation.Rule{
	simulation.OriginalDefault,
	simulation.OriginalWide,
	simulation.Ours{Label: "podstarter", Policy: decision.DefaultPolicy, Idle: decision.DefaultIdle},
}

// fair are rules for the question how much of the difference is the shutdown of idle
// pods.
var fair = []simulation.Rule{
	simulation.Original{Label: "original, pods idle 4 min", MaxPods: 20, Idle: decision.DefaultIdle},
	simulation.Ours{Label: "podstarter, pods idle 20 min", Policy: decision.DefaultPolicy, Idle: 20 * time.Minute},
}

// variants are other policies.
var variants = []simulation.Rule{
	variant("Patience 0", func(p *decision.Policy) { p.Patience = 0 }),
	variant("Patience 5 min", func(p *decision.Policy) { p.Patience = 5 * time.Minute }),
	variant("Horizon 10 min", func(p *decision.Policy) { p.Horizon = 10 * time.Minute }),
	variant("Horizon 60 min", func(p *decision.Policy) { p.Horizon = time.Hour }),
	variant("Settle 1 min", func(p *decision.Policy) { p.Settle = time.Minute }),
	variant("Settle 10 min", func(p *decision.Policy) { p.Settle = 10 * time.Minute }),
	variant("Ramp 20 + 1/4", func(p *decision.Policy) { p.Ramp = decision.Ramp{First: 20, Part: 0.25} }),
}

func variant(name string, change func(*decision.Policy)) simulation.Rule {
	p := decision.DefaultPolicy
	change(&p)
	return simulation.Ours{Label: name, Policy: p, Idle: decision.DefaultIdle}
}

// page is the results that it shows.
type page struct {
	scenarios []simulation.Scenario
	seed      uint64
	results   [][]simulation.Result // by scenario, and then as in rules
	fair      [][]simulation.Result
	// variants has the policies on the last scenario, after the default one.
	variants []simulation.Result
}

func newPage(scenarios []simulation.Scenario, seed uint64) *page {
	p := &page{scenarios: scenarios, seed: seed}
	for _, s := range scenarios {
		var main, other []simulation.Result
		for _, r := range rules {
			main = append(main, simulation.Run(s, r))
		}
		for _, r := range fair {
			other = append(other, simulation.Run(s, r))
		}
		p.results, p.fair = append(p.results, main), append(p.fair, other)
	}
	last := len(scenarios) - 1
	p.variants = append(p.variants, p.results[last][len(rules)-1])
	for _, r := range variants {
		p.variants = append(p.variants, simulation.Run(scenarios[last], r))
	}
	return p
}

// tables writes what was measured.
func (p *page) tables() string {
	var b strings.Builder
	b.WriteString("| scenario | rule | pod-hours | CPU-hours | of these wasted | wait, mean | wait, 95 of 100 | jobs finished | pods made | withdrawn | failed | for unmatchable jobs |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i, s := range p.scenarios {
		for _, r := range p.results[i] {
			f := r.Figures
			fmt.Fprintf(&b, "| %s | %s | %.0f | %.0f | %.0f | %s | %s | %d of %d | %d | %d | %d | %d |\n", s.Name, r.Rule, f.PodHours, f.CPUHours, f.Waste,
				clock(f.Wait), clock(f.Wait95), f.Finished, f.Submitted, f.Made, f.Withdrawn, f.Failed, f.ForNothing)
		}
	}
	b.WriteString("\nAgainst the original with its defaults, and against the one whose limit does not bind:\n\n")
	b.WriteString("| scenario | waste | wait | | waste | wait | |\n|---|---|---|---|---|---|---|\n")
	for i, s := range p.scenarios {
		all := p.results[i]
		ours := all[len(all)-1].Figures
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.Name, against(ours, all[0].Figures), against(ours, all[1].Figures))
	}
	b.WriteString("\nWith the other one's shutdown of idle pods:\n\n")
	b.WriteString("| scenario | rule | CPU-hours wasted | wait, mean |\n|---|---|---|---|\n")
	for i, s := range p.scenarios {
		for _, r := range p.fair[i] {
			fmt.Fprintf(&b, "| %s | %s | %.0f | %s |\n", s.Name, r.Rule, r.Figures.Waste, clock(r.Figures.Wait))
		}
	}
	b.WriteString("\nWhere waste comes from, in CPU-hours:\n\n")
	b.WriteString("| scenario | rule | before the pod reports | while no job runs in it | beside its jobs |\n|---|---|---|---|---|\n")
	for i, s := range p.scenarios {
		for _, r := range []simulation.Result{p.results[i][0], p.results[i][len(rules)-1]} {
			fmt.Fprintf(&b, "| %s | %s | %.0f | %.0f | %.0f |\n", s.Name, r.Rule, r.Figures.Starting, r.Figures.Empty, r.Figures.Beside)
		}
	}
	b.WriteString("\nCalls of the API server:\n\n")
	b.WriteString("| scenario | rule | creates | deletes | lists | pods in lists and events |\n|---|---|---|---|---|---|\n")
	for i, s := range p.scenarios {
		for _, r := range p.results[i] {
			f := r.Figures
			fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d |\n", s.Name, r.Rule, f.Creates, f.Deletes, f.Lists, f.Objects)
		}
	}
	fmt.Fprintf(&b, "\nOther policies, on the scenario \"%s\":\n\n", p.scenarios[len(p.scenarios)-1].Name)
	b.WriteString("| policy | CPU-hours wasted | wait, mean | wait, 95 of 100 | pods made | withdrawn |\n|---|---|---|---|---|---|\n")
	for i, r := range p.variants {
		name := r.Rule
		if i == 0 {
			name = "the default"
		}
		fmt.Fprintf(&b, "| %s | %.0f | %s | %s | %d | %d |\n", name, r.Figures.Waste, clock(r.Figures.Wait), clock(r.Figures.Wait95), r.Figures.Made, r.Figures.Withdrawn)
	}
	b.WriteString("\n" + p.promises())
	return b.String()
}

// against compares waste and waiting time, and says which part of the aim is missed.
func against(ours, other simulation.Figures) string {
	missed := []string{}
	if 2*ours.Waste > other.Waste {
		missed = append(missed, "waste")
	}
	if ours.Wait > other.Wait {
		missed = append(missed, "wait")
	}
	verdict := "met"
	if len(missed) > 0 {
		verdict = "missed: " + strings.Join(missed, ", ")
	}
	return fmt.Sprintf("%.0f %% | %s of %s | %s", 100*ours.Waste/max(other.Waste, 1), clock(ours.Wait), clock(other.Wait), verdict)
}

// promises lists the invariants that were broken.
func (p *page) promises() string {
	var broken []string
	look := func(all []simulation.Result) {
		for _, r := range all {
			for _, v := range r.Violations {
				broken = append(broken, fmt.Sprintf("* %s, %s: %s\n", r.Scenario, r.Rule, v))
			}
		}
	}
	for i := range p.scenarios {
		look(p.results[i])
		look(p.fair[i])
	}
	look(p.variants)
	if len(broken) == 0 {
		return "No promise was broken in these runs: no limit was exceeded, no pod was withdrawn sooner than `Settle` after it was made or made sooner than that after one of its shape was withdrawn, claims and free room of each pod added up, and each job that matches a template was served.\n"
	}
	return "Broken promises:\n\n" + strings.Join(broken, "")
}

// clock writes a waiting time in minutes and seconds.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// plot draws the last scenario under the original and under our rule.
func (p *page) plot() (string, error) {
	last := p.results[len(p.results)-1]
	panels := []chart.Panel{{Title: "Idle jobs that can run"}, {Title: "Pods"}, {Title: "CPUs"}}
	for i, r := range []simulation.Result{last[0], last[len(last)-1]} {
		// Means of six samples, an hour: single ones would be a band.
		series := func(value func(simulation.Sample) int) []float64 {
			var hours []float64
			for at := 0; at+6 <= len(r.Samples); at += 6 {
				sum := 0
				for _, s := range r.Samples[at : at+6] {
					sum += value(s)
				}
				hours = append(hours, float64(sum)/6)
			}
			return hours
		}
		add := func(panel int, name string, style int, value func(simulation.Sample) int) {
			panels[panel].Lines = append(panels[panel].Lines, chart.Line{Name: name, Style: style, Values: series(value)})
		}
		add(0, r.Rule, i, func(s simulation.Sample) int { return s.Idle })
		add(1, r.Rule, i, func(s simulation.Sample) int { return s.Pods })
		add(2, r.Rule+": of pods", i, func(s simulation.Sample) int { return s.PodCPUs })
		add(2, "used by jobs", i+2, func(s simulation.Sample) int { return s.BusyCPUs })
	}
	var b strings.Builder
	err := chart.Write(&b, 7, panels...)
	return b.String(), err
}
