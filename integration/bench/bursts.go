package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"podstarter/integration/harness"
)

// burst is a kind of handover in one slot.
type burst struct {
	length time.Duration // of the job that ended
	spares int
	other  bool // the next job had another image
}

// burstResults are the handovers of jobs that followed each other in one slot.
type burstResults struct {
	lengths []time.Duration // in the order of the series
	spares  []int
	stock   map[time.Duration][]handover
	ours    map[burst][]handover
	broken  int
	cut     int // jobs that were removed
}

const (
	// settling is the length of the jobs before those that count. It is enough to make
	// used containers new.
	settling = 3 * time.Second
	// Least and most jobs of one length in a series.
	leastBurst, mostBurst = 3, 20
	// turning is about how long it takes until the next job runs.
	turning = 700 * time.Millisecond
)

// burstSize is how many jobs of a length fit into a time.
func burstSize(length, budget time.Duration) int {
	return min(max(int(budget/(length+turning)), leastBurst), mostBurst)
}

// burstTasks are the jobs of a series, in these images in turns: those before which the
// slot settles, those that count by their number, with their lengths, and one that the last
// of these is followed by.
func burstTasks(lengths []time.Duration, budget time.Duration, images []string) (tasks []task, counted map[int]time.Duration) {
	add := func(length time.Duration) {
		t := task{steps: "sleep=" + length.String()}
		if len(images) > 0 {
			t.image = images[len(tasks)%len(images)]
		}
		tasks = append(tasks, t)
	}
	for range max(len(images), 1) {
		add(settling)
	}
	counted = map[int]time.Duration{}
	for _, length := range lengths {
		for range burstSize(length, budget) {
			counted[len(tasks)] = length
			add(length)
		}
	}
	add(lengths[len(lengths)-1])
	return tasks, counted
}

// bursts runs the series under stock and, with each number of spares, under ours. All
// are in the same pod, of which ours uses as many containers as it is told.
func (b *bencher) bursts(ctx context.Context, lengths []time.Duration, spares []int, budget time.Duration) (*burstResults, error) {
	r := &burstResults{lengths: lengths, spares: spares, stock: map[time.Duration][]handover{}, ours: map[burst][]handover{}}
	most := 0
	for _, k := range spares {
		most = max(most, k)
	}
	if err := timed(fmt.Sprintf("a pod with 1 slot and %d spares", most), func() error { return b.resize(ctx, 1, most, false) }); err != nil {
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
	if err := b.configure(ctx, harness.Ours, sparing(containers, 1, most)...); err != nil {
		return nil, err
	}
	if err := timed("the first jobs, not counted", func() error { return b.warm(ctx) }); err != nil {
		return nil, err
	}
	tasks, counted := burstTasks(lengths, budget, nil)
	err = timed("bursts, stock", func() error {
		s, err := b.series(ctx, harness.Stock, tasks)
		r.broken, r.cut = r.broken+s.broken, r.cut+s.cut
		for _, h := range s.handovers {
			if length, ok := counted[h.before]; ok {
				r.stock[length] = append(r.stock[length], h)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, k := range spares {
		if err := b.configure(ctx, harness.Ours, sparing(containers, 1, k)...); err != nil {
			return nil, err
		}
		for _, images := range [][]string{{imageA}, {imageA, imageB}} {
			err := timed(fmt.Sprintf("bursts, %d spares, %d images", k, len(images)), func() error {
				tasks, counted := burstTasks(lengths, budget, images)
				s, err := b.series(ctx, harness.Ours, tasks)
				r.add(k, tasks, counted, s)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// add adds a series of ours.
func (r *burstResults) add(spares int, tasks []task, counted map[int]time.Duration, s series) {
	r.broken, r.cut = r.broken+s.broken, r.cut+s.cut
	for _, h := range s.handovers {
		length, ok := counted[h.before]
		if !ok {
			continue
		}
		key := burst{length, spares, tasks[h.before].image != tasks[h.after].image}
		r.ours[key] = append(r.ours[key], h)
	}
}

// timed says how long a step took.
func timed(name string, step func() error) error {
	began := time.Now()
	if err := step(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(began).Seconds(), name)
	return nil
}
