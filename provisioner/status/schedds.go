package status

import (
	"cmp"
	"slices"

	"podstarter/provisioner/round"
)

// access returns the schedds with the most idle jobs that count, those of this pool
// before all others, and the sum of those that are left out. Two that differ only in what is cut from their names are one.
func access(rep *round.Report) []scheddView {
	sums := map[[2]string]int{}
	for _, g := range rep.Groups {
		for _, s := range g.Schedds {
			sums[[2]string{cut(s.Schedd.Name, maxName), cut(s.Schedd.Pool, maxName)}] += s.Idle
		}
	}
	var all []scheddView
	rest := scheddView{Name: other}
	rest.Idle = sums[[2]string{other}]
	delete(sums, [2]string{other})
	for key, idle := range sums {
		all = append(all, scheddView{Name: key[0], Pool: key[1], Idle: idle})
	}
	slices.SortFunc(all, func(a, b scheddView) int {
		if (a.Pool == "") != (b.Pool == "") {
			if a.Pool == "" {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Idle, a.Idle), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Pool, b.Pool))
	})
	for _, s := range all[min(len(all), maxSchedds):] {
		rest.Idle += s.Idle
	}
	if all = all[:min(len(all), maxSchedds)]; rest.Idle > 0 {
		all = append(all, rest)
	}
	return all
}
