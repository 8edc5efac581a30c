package main

import (
	"slices"
	"time"

	"podstarter/integration/harness"
)

// spread sums up durations.
type spread struct {
	n                          int
	least, median, ninth, most time.Duration // ninth: nine of ten are not longer
}

func spreadOf(values []time.Duration) spread {
	n := len(values)
	if n == 0 {
		return spread{}
	}
	values = slices.Sorted(slices.Values(values))
	return spread{
		n:      n,
		least:  values[0],
		median: (values[(n-1)/2] + values[n/2]) / 2,
		ninth:  values[(9*n+9)/10-1],
		most:   values[n-1],
	}
}

// phases are the names of phases, in the order in which the first run that has them
// logged them.
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
