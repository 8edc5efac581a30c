package conformance

import (
	"fmt"
	"regexp"
	"strings"

	"podstarter/integration/harness"
	"podstarter/integration/turn"
)

// Picked says which cases run and which do not.
type Picked struct {
	Cases []Case
	// InTurn are the names of those among them that run because it is their turn, Left
	// those of cases whose turn it is not.
	InTurn, Left []string
	// Beside are the names of cases whose reference the pool lacks.
	Beside []string
}

// Pick chooses from the cases for such a pool: those whose name, or SUBJECT/NAME,
// the pattern matches, whose reference the pool has, and of the cases on request those
// whose turn it is. It returns an error if no case is left.
func Pick(subjects []Subject, k harness.Kind, has func(harness.Side) bool, pattern *regexp.Regexp, t turn.Turn) (Picked, error) {
	var p Picked
	for _, s := range subjects {
		for _, c := range s.Cases {
			if !c.For(k) || !pattern.MatchString(c.Name) && !pattern.MatchString(s.Name+"/"+c.Name) {
				continue
			}
			if !has(c.reference()) {
				p.Beside = append(p.Beside, c.Name)
				continue
			}
			if c.OnRequest && !t.Has(c.Name) {
				p.Left = append(p.Left, c.Name)
				continue
			}
			if c.OnRequest {
				p.InTurn = append(p.InTurn, c.Name)
			}
			p.Cases = append(p.Cases, c)
		}
	}
	switch {
	case len(p.Cases) > 0:
		return p, nil
	case len(p.Left) > 0:
		return p, fmt.Errorf("it is not the turn of the cases whose names match %q; run them with -all: %s", pattern, strings.Join(p.Left, ", "))
	case len(p.Beside) > 0:
		return p, fmt.Errorf("the pool has not all execution points with which the cases whose names match %q are compared; "+
			"start them with: pool up --stock --stock-docker --stock-apptainer", pattern)
	}
	return p, fmt.Errorf("no case's name matches %q", pattern)
}
