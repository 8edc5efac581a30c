package conformance

import (
	"fmt"
	"regexp"
	"strings"

	"podstarter/integration/harness"
)

// Picked says which cases run and which do not.
type Picked struct {
	Cases []Case
	// Left are the names of cases that would also run with -all.
	Left []string
}

// Pick chooses from the cases for such a pool: those whose name, or SUBJECT/NAME,
// the pattern matches. Cases on request are chosen only with all. It returns an
// error if no case is left.
func Pick(subjects []Subject, v harness.Versions, pattern *regexp.Regexp, all bool) (Picked, error) {
	var p Picked
	for _, s := range subjects {
		for _, c := range s.Cases {
			switch {
			case !c.For(v) || !pattern.MatchString(c.Name) && !pattern.MatchString(s.Name+"/"+c.Name):
			case c.OnRequest && !all:
				p.Left = append(p.Left, c.Name)
			default:
				p.Cases = append(p.Cases, c)
			}
		}
	}
	switch {
	case len(p.Cases) > 0:
		return p, nil
	case len(p.Left) > 0:
		return p, fmt.Errorf("the cases whose names match %q run only with -all: %s", pattern, strings.Join(p.Left, ", "))
	}
	return p, fmt.Errorf("no case's name matches %q", pattern)
}
