package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// pick is a value of one trip, in the caller's unit.
type pick func(trip) float64

func seconds(w way, of func(moved) time.Duration) pick {
	return func(t trip) float64 { return of(t.ways[w]).Seconds() }
}

func wallOf(m moved) time.Duration    { return m.wall }
func starterOf(m moved) time.Duration { return m.starter }
func shadowOf(m moved) time.Duration  { return m.shadow }

// middle returns the median of the picked values, with the least and the greatest.
func middle(trips []trip, of pick) (median, least, most float64) {
	var values []float64
	for _, t := range trips {
		values = append(values, of(t))
	}
	if len(values) == 0 {
		return 0, 0, 0
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2, values[0], values[n-1]
}

// tables is the whole result as text, in Markdown.
func (r *transferResults) tables() string {
	var b strings.Builder
	rounds := 0
	for _, sides := range r.trips {
		rounds = max(rounds, len(sides[harness.Stock]))
	}
	fmt.Fprintf(&b, "Measured on %s, %s, %d rounds", r.when.UTC().Format("2006-01-02"), r.machine, rounds)
	if r.smaller > 1 {
		fmt.Fprintf(&b, ", with loads that are %d times smaller", r.smaller)
	}
	b.WriteString(". Medians, in brackets the least and the most.")
	if r.broken > 0 {
		fmt.Fprintf(&b, " Jobs that went wrong, and were run again: %d.", r.broken)
	}
	b.WriteString("\n\n")
	b.WriteString("| wall time of the transfer, s | way | stock | ours | stock / ours |\n|---|---|---|---|---|\n")
	r.lines(&b, wallOf)
	b.WriteString("\n| CPU time of the starter, s | way | stock | ours | stock / ours |\n|---|---|---|---|---|\n")
	r.lines(&b, starterOf)
	b.WriteString("\n| CPU time of the shadow, s | way | stock | ours | stock / ours |\n|---|---|---|---|---|\n")
	r.lines(&b, shadowOf)

	b.WriteString("\n| CPU time of the starter, s per GB | way | stock | ours |\n|---|---|---|---|\n")
	for _, l := range r.loads {
		const giga = 1e9
		if l.total() < giga/10 {
			continue // it says more about the number of files
		}
		for w := range ways {
			fmt.Fprintf(&b, "| %s | %s |", l.title, w)
			for _, side := range []harness.Side{harness.Stock, harness.Ours} {
				median, _, _ := middle(r.trips[l.name][side], seconds(w, starterOf))
				fmt.Fprintf(&b, " %.2f |", median/(float64(l.total())/giga))
			}
			b.WriteByte('\n')
		}
	}

	b.WriteString("\n| peak resident memory of the starter, MiB | stock | ours |\n|---|---|---|\n")
	for _, l := range r.loads {
		fmt.Fprintf(&b, "| %s |", l.title)
		for _, side := range []harness.Side{harness.Stock, harness.Ours} {
			median, least, most := middle(r.trips[l.name][side], func(t trip) float64 { return float64(t.peak) / 1024 })
			fmt.Fprintf(&b, " %.1f (%.1f–%.1f) |", median, least, most)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// lines are those of one table.
func (r *transferResults) lines(b *strings.Builder, of func(moved) time.Duration) {
	for _, l := range r.loads {
		for w := range ways {
			fmt.Fprintf(b, "| %s | %s |", l.title, w)
			var medians []float64
			for _, side := range []harness.Side{harness.Stock, harness.Ours} {
				median, least, most := middle(r.trips[l.name][side], seconds(w, of))
				medians = append(medians, median)
				fmt.Fprintf(b, " %.3f (%.3f–%.3f) |", median, least, most)
			}
			ratio := "—"
			if medians[1] > 0 {
				ratio = fmt.Sprintf("%.2f", medians[0]/medians[1])
			}
			fmt.Fprintf(b, " %s |\n", ratio)
		}
	}
}
