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

// mostNamed is how many schedds of this pool, and how many of others, the metrics name
// as long as the program runs. Prometheus keeps each series that it has seen.
const mostNamed = 200

// named are the schedds that the metrics have named.
type named struct{ ours, others map[scheddView]bool }

// bound counts schedds together that come with further names. The last one may be the
// sum of others.
func (n *named) bound(all []scheddView) []scheddView {
	if n.ours == nil {
		n.ours, n.others = map[scheddView]bool{}, map[scheddView]bool{}
	}
	var kept []scheddView
	rest := scheddView{Name: other}
	for _, s := range all {
		known, key := n.ours, scheddView{Name: s.Name, Pool: s.Pool}
		if s.Pool != "" {
			known = n.others
		}
		if key.Name == other && key.Pool == "" || !known[key] && len(known) >= mostNamed {
			rest.Idle += s.Idle
			continue
		}
		known[key] = true
		kept = append(kept, s)
	}
	if rest.Idle > 0 {
		kept = append(kept, rest)
	}
	return kept
}
