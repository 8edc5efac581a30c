package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// spareResults are all measurements with spare containers.
type spareResults struct {
	when    time.Time
	machine string
	bursts  *burstResults // nil if not measured
	crowds  []crowd
}

// What is aimed at.
const (
	aimGap   = 100 * time.Millisecond // with a fresh container
	aimAfter = 3 * time.Second        // jobs that run at least so long
	aimRatio = 0.95                   // of stock's jobs a minute
	aimSlots = 32
)

// tables is the whole result as text, in Markdown.
func (r *spareResults) tables() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, %s, in one run.\n", r.when.UTC().Format("2006-01-02"), r.machine)
	if r.bursts != nil {
		r.bursts.tables(&b)
	}
	if len(r.crowds) > 0 {
		crowdTables(&b, r.crowds)
	}
	return b.String()
}

// tables of jobs that follow each other in one slot.
func (r *burstResults) tables(b *strings.Builder) {
	lengths := slices.Sorted(slices.Values(r.lengths))
	head := func(title string) {
		b.WriteString("\n| " + title + " |")
		for _, l := range lengths {
			fmt.Fprintf(b, " after jobs of %g s |", l.Seconds())
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(lengths)) + "\n")
	}
	lines := func(cell func(time.Duration, []handover) string, stock bool) {
		if stock {
			b.WriteString("| stock starter, no container |")
			for _, l := range lengths {
				b.WriteString(" " + cell(l, r.stock[l]) + " |")
			}
			b.WriteByte('\n')
		}
		for _, other := range []bool{false, true} {
			for _, k := range r.spares {
				fmt.Fprintf(b, "| %s, K = %d |", imagesOf(other), k)
				for _, l := range lengths {
					b.WriteString(" " + cell(l, r.ours[burst{l, k, other}]) + " |")
				}
				b.WriteByte('\n')
			}
		}
	}
	head("one slot: from the end of a job's process to the next job's, s: median, 9 of 10 (jobs)")
	lines(func(_ time.Duration, all []handover) string {
		s := spreadOf(gapsOf(all))
		if s.n == 0 {
			return "—"
		}
		return fmt.Sprintf("%.3f, %.3f (%d)", s.median.Seconds(), s.ninth.Seconds(), s.n)
	}, true)
	head("the same: median / stock's median")
	lines(func(l time.Duration, all []handover) string {
		return ratio(spreadOf(gapsOf(all)).median.Seconds(), spreadOf(gapsOf(r.stock[l])).median.Seconds())
	}, false)
	head("which part of the jobs found a container that was fresh and had the image")
	lines(func(_ time.Duration, all []handover) string {
		if len(all) == 0 {
			return "—"
		}
		return fmt.Sprintf("%.2f", freshPart(all))
	}, false)
	b.WriteByte('\n')
	if s := spreadOf(r.afterLong()); s.n > 0 {
		fmt.Fprintf(b, "After jobs of %g s and longer, jobs that found a fresh container started within %.3f s (median), %.3f s (9 of 10), %.3f s (all %d). Aim: %.1f s.",
			aimAfter.Seconds(), s.median.Seconds(), s.ninth.Seconds(), s.most.Seconds(), s.n, aimGap.Seconds())
	}
	broken(b, r.broken)
	if r.cut > 0 {
		fmt.Fprintf(b, " Jobs that were removed, since their series took more than %g minutes: %d.", patienceOfSeries.Minutes(), r.cut)
	}
	b.WriteByte('\n')
}

func imagesOf(other bool) string {
	if other {
		return "another image"
	}
	return "same image"
}

// afterLong are the gaps after the jobs of the aim, before those that found a fresh container.
func (r *burstResults) afterLong() []time.Duration {
	var long []handover
	for kind, all := range r.ours {
		if kind.length < aimAfter {
			continue
		}
		for _, h := range all {
			if h.fresh {
				long = append(long, h)
			}
		}
	}
	return gapsOf(long)
}

// crowdTables are those of jobs in many slots at once.
func crowdTables(b *strings.Builder, all []crowd) {
	fmt.Fprintf(b, "\n| many slots, jobs of %g s | jobs | jobs a minute | / stock | from one job to the next, s: median | 9 of 10 | found a fresh container |\n|---|---|---|---|---|---|---|\n", crowdLength.Seconds())
	lost := 0
	var cut []string
	for _, c := range all {
		s := spreadOf(c.gaps())
		fresh := "—"
		if !c.side.IsStock() {
			fresh = fmt.Sprintf("%.2f", freshPart(c.series.handovers))
		}
		fmt.Fprintf(b, "| %s | %d | %.1f | %s | %.3f | %.3f | %s |\n", c.name(), c.series.jobs, c.jobsAMinute(),
			ratio(c.jobsAMinute(), stockOf(all, c.slots).jobsAMinute()), s.median.Seconds(), s.ninth.Seconds(), fresh)
		lost += c.series.broken
		if n := c.series.cut; n > 0 {
			cut = append(cut, fmt.Sprintf("%s: %d of %d jobs", c.name(), n, n+c.series.jobs))
		}
	}
	for _, c := range all {
		if c.slots == aimSlots && c.spares > 0 {
			fmt.Fprintf(b, "\nWith %d slots and %d spares, the ratio to stock is %s. Aim: %.2f.\n", c.slots, c.spares, ratio(c.jobsAMinute(), stockOf(all, c.slots).jobsAMinute()), aimRatio)
		}
	}

	b.WriteString("\n| CPU time, s a job |")
	for _, who := range consumers {
		b.WriteString(" " + who + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(consumers)) + "\n")
	for _, c := range all {
		fmt.Fprintf(b, "| %s |", c.name())
		for _, who := range consumers {
			used, ok := c.cpu[who]
			if !ok {
				b.WriteString(" — |")
				continue
			}
			fmt.Fprintf(b, " %.3f |", used.Seconds()/float64(max(c.series.jobs, 1)))
		}
		b.WriteByte('\n')
	}

	verbs := []string{"patch", "watch", "get"}
	fmt.Fprintf(b, "\n| requests to the API server, a job | %s | of everybody, the kubelet too |\n|---|---|---|---|---|\n", strings.Join(verbs, " | "))
	for _, c := range all {
		fmt.Fprintf(b, "| %s |", c.name())
		for _, verb := range verbs {
			fmt.Fprintf(b, " %.2f |", float64(c.calls[verb])/float64(max(c.series.jobs, 1)))
		}
		fmt.Fprintf(b, " %.2f |\n", float64(c.all)/float64(max(c.series.jobs, 1)))
	}

	b.WriteString("\n| PSS of a starter while its job runs, MiB | starters | median | most |\n|---|---|---|---|\n")
	for _, c := range all {
		if n := len(c.pss); n > 0 {
			fmt.Fprintf(b, "| %s | %d | %.1f | %.1f |\n", c.name(), n, float64(c.pss[(n-1)/2]+c.pss[n/2])/2/1024, float64(c.pss[n-1])/1024)
		}
	}
	if len(cut) > 0 {
		fmt.Fprintf(b, "\nJobs that had not ended after %g minutes, and were removed: %s.\n", patienceOfSeries.Minutes(), strings.Join(cut, "; "))
	}
	if lost > 0 {
		b.WriteByte('\n')
		broken(b, lost)
		b.WriteByte('\n')
	}
}

// name is what a line of a table begins with.
func (c crowd) name() string {
	if c.side.IsStock() {
		return fmt.Sprintf("%d slots, stock starter, no container", c.slots)
	}
	return fmt.Sprintf("%d slots, K = %d", c.slots, c.spares)
}

// stockOf is stock's series in so many slots.
func stockOf(all []crowd, slots int) crowd {
	for _, c := range all {
		if c.slots == slots && c.side == harness.Stock {
			return c
		}
	}
	return crowd{}
}

func ratio(value, reference float64) string {
	if reference == 0 || value == 0 {
		return "—"
	}
	return fmt.Sprintf("%.2f", value/reference)
}

// broken says that runs are missing in the tables.
func broken(b *strings.Builder, n int) {
	if n > 0 {
		fmt.Fprintf(b, " Runs of starters in which no job's process started and ended, not counted: %d.", n)
	}
}
