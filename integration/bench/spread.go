package main

import (
	"slices"
	"time"

	"podstarter/integration/harness"
)

// spread sums up durations.
type spread struct{ median, mean, least, most time.Duration }

func spreadOf(runs []harness.Run, of func(harness.Run) time.Duration) spread {
	if len(runs) == 0 {
		return spread{}
	}
	var values []time.Duration
	var sum time.Duration
	for _, r := range runs {
		values = append(values, of(r))
		sum += of(r)
	}
	slices.Sort(values)
	n := len(values)
	return spread{
		median: (values[(n-1)/2] + values[n/2]) / 2,
		mean:   sum / time.Duration(n),
		least:  values[0],
		most:   values[n-1],
	}
}

// phases are the names that the runs tell of, in the order in which the first
// run that has them logged them.
func phases(runs []harness.Run) []string {
	var names []string
	for _, r := range runs {
		for _, name := range r.PhaseOrder {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
