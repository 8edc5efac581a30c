package simulation

import (
	"fmt"
	"os"
	"testing"
	"time"

	"podstarter/provisioner/decision"
)

func TestExplore(t *testing.T) {
	m := time.Minute
	if os.Getenv("EXPLORE") == "" {
		t.Skip()
	}
	var rules []Rule
	add := func(name string, idle time.Duration, change func(p *decision.Policy)) {
		p := decision.DefaultPolicy
		change(&p)
		rules = append(rules, Ours{name, p, idle})
	}
	rules = append(rules, OriginalDefault, OriginalWide)
	add("default", 4*m, func(p *decision.Policy) {})
	add("p2", 4*m, func(p *decision.Policy) { p.Patience = 2 * m })
	for _, s := range Scenarios(1, Week) {
		for _, r := range rules {
			f := Run(s, r)
			fmt.Println(s.Name, r.Name(), int(f.Figures.Waste), f.Figures.Wait.Round(time.Second), f.Figures.Made, f.Figures.Withdrawn, f.Figures.Failed, f.Violations)
		}
	}
}
