package conformance

import (
	"fmt"
	"regexp"
	"strings"

	"podstarter/integration/harness"
)

// Picked is which cases run, and which do not.
type Picked struct {
	Cases []Case
	// Left are the names of those that would run if all were asked for.
	Left []string
}

// Pick chooses from the cases that are for such a pool: those whose name, or
// SUBJECT/NAME, the pattern matches, and of them only with all those that run on
// request. It is an error if none is left.
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
		return p, fmt.Errorf("the cases that are called like %q run only with -all: %s", pattern, strings.Join(p.Left, ", "))
	}
	return p, fmt.Errorf("no case is called like %q", pattern)
}
