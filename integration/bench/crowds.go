package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// crowd is a series of jobs in all slots of a pod at once.
type crowd struct {
	slots  int
	side   harness.Side
	spares int
	series series
	cpu    usage
	calls  map[string]int // of our starters to the API server, by verb
	all    int            // requests that the API server answered, whoever asked
	pss    []int64        // proportional set size of each starter while its job ran, KiB
}

// crowdLength is how long each of these jobs runs.
const crowdLength = 5 * time.Second

// jobsAMinute is how many jobs the slots run in a minute as long as there are enough in the
// queue: by the time from one job's start to the next one's in the same slot.
func (c crowd) jobsAMinute() float64 {
	if len(c.series.handovers) == 0 {
		return 0
	}
	var sum time.Duration
	for _, h := range c.series.handovers {
		sum += h.period
	}
	return float64(c.slots) * float64(len(c.series.handovers)) / sum.Minutes()
}

// gaps are the times from one job's end to the next one's start.
func (c crowd) gaps() []time.Duration { return gapsOf(c.series.handovers) }

func gapsOf(handovers []handover) []time.Duration {
	var gaps []time.Duration
	for _, h := range handovers {
		gaps = append(gaps, h.gap)
	}
	return gaps
}

// freshPart is which part of the jobs that followed another one found a fresh container.
func freshPart(handovers []handover) float64 {
	n := 0
	for _, h := range handovers {
		if h.fresh {
			n++
		}
	}
	return float64(n) / float64(max(len(handovers), 1))
}

// crowds runs as many jobs as there are slots at once, for several numbers of slots: under
// stock, and under ours without spares and with half as many as slots.
func (b *bencher) crowds(ctx context.Context, slots []int, least int) ([]crowd, error) {
	var all []crowd
	for _, n := range slots {
		some, err := b.crowdsOf(ctx, n, max(least, leastRounds*n))
		all = append(all, some...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// leastRounds is how many jobs each slot has at least, in the mean.
const leastRounds = 3

func (b *bencher) crowdsOf(ctx context.Context, slots, jobs int) ([]crowd, error) {
	spares := slots / 2
	if err := timed(fmt.Sprintf("pods with %d slots, and %d spares", slots, spares), func() error { return b.resize(ctx, slots, spares, false) }); err != nil {
		return nil, err
	}
	containers, err := b.pool.Containers(ctx)
	if err != nil {
		return nil, err
	}
	defer b.unconfigure(ctx, harness.Ours)
	defer b.unconfigure(ctx, harness.Stock)
	if err := b.configure(ctx, harness.Stock, ordinaryLog); err != nil {
		return nil, err
	}
	var all []crowd
	for _, c := range []crowd{{side: harness.Stock}, {side: harness.Ours}, {side: harness.Ours, spares: spares}} {
		c.slots = slots
		var images []string
		if !c.side.IsStock() {
			images = []string{imageA}
			if err := b.configure(ctx, c.side, sparing(containers, slots, c.spares)...); err != nil {
				return all, err
			}
		}
		err := timed(fmt.Sprintf("%d jobs in %d slots, %s, %d spares", jobs, slots, c.side, c.spares), func() error {
			return b.runCrowd(ctx, &c, tasksOf("sleep="+crowdLength.String(), images, jobs))
		})
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}

// runCrowd runs the jobs and measures.
func (b *bencher) runCrowd(ctx context.Context, c *crowd, tasks []task) error {
	m, err := b.newMeter(c.side)
	if err != nil {
		return err
	}
	answered, err := b.answered(ctx)
	if err != nil {
		return err
	}
	log, err := b.pool.APILog()
	if err != nil {
		return err
	}
	before, err := m.read()
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	sizes := make(chan map[int]int64, 1)
	go func() { sizes <- watchPSS(watching, b.pool.Starters(c.side)) }()
	if c.series, err = b.series(ctx, c.side, tasks); err != nil {
		return err
	}
	stop()
	after, err := m.read()
	if err != nil {
		return err
	}
	c.cpu = after.since(before)
	for _, size := range <-sizes {
		c.pss = append(c.pss, size)
	}
	slices.Sort(c.pss)
	calls, err := log.Calls()
	if err != nil {
		return err
	}
	c.calls = map[string]int{}
	for _, call := range calls {
		c.calls[call.Verb]++
	}
	now, err := b.answered(ctx)
	c.all = now - answered
	return err
}

// answered is how many requests the API server has answered so far.
func (b *bencher) answered(ctx context.Context) (int, error) {
	text, err := b.pool.Kubectl(ctx, nil, "get", "--raw", "/metrics")
	if err != nil {
		return 0, err
	}
	return answeredIn(text)
}

// answeredIn adds up the counters of a metric in Prometheus' text format.
func answeredIn(metrics string) (int, error) {
	const counter = "apiserver_request_total{"
	total, found := 0.0, false
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, counter) {
			continue
		}
		line = strings.TrimSpace(line)
		n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("reading %q: %w", line, err)
		}
		total, found = total+n, true
	}
	if !found {
		return 0, fmt.Errorf("the API server's metrics lack %s…}", counter)
	}
	return int(total), nil
}

// pssInterval is how long a starter must have been there for its size to count: by then
// its job runs. Looking at all processes costs some ten milliseconds.
const pssInterval = 2500 * time.Millisecond

// watchPSS reads the proportional set size of each starter that was there the last time
// already, in KiB, until the context ends.
func watchPSS(ctx context.Context, starters func(harness.Process) bool) map[int]int64 {
	sizes := map[int]int64{}
	seen := map[int]bool{}
	ticker := time.NewTicker(pssInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return sizes
		case <-ticker.C:
		}
		now, err := harness.Processes(starters)
		if err != nil {
			continue
		}
		before := seen
		seen = map[int]bool{}
		for _, p := range now {
			seen[p.PID] = true
			if !before[p.PID] {
				continue
			}
			if size, err := pssOf(p.PID); err == nil { // it may have ended
				sizes[p.PID] = size
			}
		}
	}
}

func pssOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	return pssIn(string(text))
}

func pssIn(rollup string) (int64, error) {
	for line := range strings.Lines(rollup) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			return strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		}
	}
	return 0, fmt.Errorf("no Pss in %q", rollup)
}
