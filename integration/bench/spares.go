package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/measured"
)

var (
	spareCounts  = flag.String("spares", "0,1,2,4", "numbers of spares with which jobs follow each other in one slot; empty: leave these series out")
	burstLengths = flag.String("lengths", "3s,500ms,5s,1s", "how long these jobs run, in the order of a series: a long one first makes used containers new for the short ones")
	burstBudget  = flag.Duration("budget", 10*time.Second, "about how long the jobs of one length may take in a series; there are at least 3")
	slotCounts   = flag.String("slots", "8,16,32", "numbers of slots in which jobs run at once; empty: leave these out")
	crowdJobs    = flag.Int("jobs", 64, "jobs in all slots of a pod together; at least 3 for each slot")
)

// spares measures what spare payload containers change. The pool gets other numbers of slots
// for that, and at the end those that it had.
func spares(ctx context.Context, b *bencher) error {
	counts, err := listOf(*spareCounts, strconv.Atoi)
	if err != nil {
		return err
	}
	lengths, err := listOf(*burstLengths, time.ParseDuration)
	if err != nil {
		return err
	}
	slots, err := listOf(*slotCounts, strconv.Atoi)
	if err != nil {
		return err
	}
	if b.pool.Mode == harness.Rootless {
		return errors.New("a pilot without root has one payload container; start a pool with `up --mode shared`")
	}
	had := b.pool
	r := &spareResults{when: time.Now(), machine: measured.Machine()}
	if len(counts) > 0 && len(lengths) > 0 {
		r.bursts, err = b.bursts(ctx, lengths, counts, *burstBudget)
	}
	if err == nil {
		r.crowds, err = b.crowds(ctx, slots, *crowdJobs)
	}
	text := r.tables() // of what there is, if it ended early
	if _, e := os.Stdout.WriteString(text); e != nil {
		err = errors.Join(err, e)
	}
	if ctx.Err() != nil {
		return err
	}
	err = errors.Join(err, b.resize(ctx, had.Slots, had.Spares, had.Partitionable))
	if err != nil || *docs == "" {
		return err
	}
	if r.bursts == nil || len(r.crowds) == 0 {
		fmt.Fprintln(os.Stderr, "the page is not written: it needs all of the measurements")
		return nil
	}
	if err := r.writeCharts(*docs); err != nil {
		return err
	}
	return measured.Write(filepath.Join(*docs, "spares.md"), command, plots+text)
}

// plots shows the plots on the page.
const plots = `![Times from one job to the next over the number of spares, with the same image and with another one](spares.svg)

![Jobs a minute over the number of slots of a pod](slots.svg)

`

// listOf reads values with commas between them.
func listOf[T int | time.Duration](text string, read func(string) (T, error)) ([]T, error) {
	var list []T
	for field := range strings.SplitSeq(text, ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		value, err := read(field)
		if err == nil && value < 0 {
			err = errors.New("it is below 0")
		}
		if err != nil {
			return nil, fmt.Errorf("the list %q: %q: %w", text, field, err)
		}
		if slices.Contains(list, value) {
			return nil, fmt.Errorf("the list %q has %q twice", text, field)
		}
		list = append(list, value)
	}
	return list, nil
}
