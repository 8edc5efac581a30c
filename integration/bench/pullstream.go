package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"podstarter/integration/bench/images"
	"podstarter/integration/harness"
)

// random measures jobs in images at random.
func (b *pullBench) random(ctx context.Context) error {
	registry, err := images.Serve(*pullRate << 20)
	if err != nil {
		return err
	}
	defer registry.Close()
	var sets [2][]string // with pullers, and without
	for i := range sets {
		for k := range *pullImages {
			image, err := registry.Make(fmt.Sprintf("%d-%d-%d", b.when.UnixNano(), i, k), *pullSize<<20)
			if err != nil {
				return err
			}
			sets[i] = append(sets[i], image)
		}
	}
	// The others have nothing to do.
	if b.alone, err = b.single(ctx); err != nil {
		return err
	}
	if b.withPullers, b.fetched[0], err = b.stream(ctx, sets[0]); err != nil {
		return fmt.Errorf("with pullers: %w", err)
	}
	if b.there, _, err = b.stream(ctx, sets[0]); err != nil {
		return fmt.Errorf("images on the node: %w", err)
	}
	const knob = "POD_STARTER_PULLERS =\n"
	if _, err := b.pool.EPInput(ctx, harness.Ours, strings.NewReader(knob), "sh", "-c", `cat > "$1"`, "configure", configFile); err != nil {
		return err
	}
	b.without, b.fetched[1], err = b.stream(ctx, sets[1])
	_, failed := b.pool.EP(context.WithoutCancel(ctx), harness.Ours, "rm", "-f", configFile)
	return errors.Join(err, failed)
}

// single is row where all slots are free: each job is submitted when the last has ended.
func (b *pullBench) single(ctx context.Context) ([]time.Duration, error) {
	var all []time.Duration
	for i := range *pullRuns/4 + 1 {
		jobs, err := b.jobs(ctx, []string{b.pool.Image(imageA)}, []string{"sleep=" + calm.String()})
		if err != nil {
			return nil, err
		}
		run, err := finish(ctx, jobs[0])
		if err != nil {
			return nil, err
		}
		if took, ok := startTime(run); ok && i > 0 {
			all = append(all, took)
		}
	}
	return all, nil
}

// stream runs jobs in these images at random, the same each time. It gives the start times
// of those whose image was on the node when their starter began, and how many images came.
func (b *pullBench) stream(ctx context.Context, images []string) (starts []time.Duration, fetched int, err error) {
	random := rand.New(rand.NewPCG(1, 2))
	var chosen, steps []string
	for range *pullJobs {
		chosen = append(chosen, images[random.IntN(len(images))])
		steps = append(steps, fmt.Sprintf("sleep=%dms", 1000+random.IntN(4000)))
	}
	marks, err := b.pool.MarkLogs(harness.Ours)
	if err != nil {
		return nil, 0, err
	}
	before := map[string]bool{} // by image, whether it ran in an earlier stream
	for _, image := range images {
		before[image] = b.ran[image]
	}
	began := time.Now()
	jobs, err := b.jobs(ctx, chosen, steps)
	if err != nil {
		return nil, 0, err
	}
	for _, job := range jobs {
		wait, cancel := context.WithTimeout(ctx, patienceOfRow)
		end, err := job.WaitEnding(wait)
		cancel()
		if err == nil && (!end.Exited || end.Code != 0) {
			err = fmt.Errorf("job %s: %s", job.ID(), end)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%w\n%s", err, job.Describe())
		}
	}
	fmt.Fprintf(os.Stderr, "%6.1f s  %d jobs\n", time.Since(began).Seconds(), len(jobs))
	if err := harness.WaitNone(ctx, b.pool.Starters(harness.Ours)); err != nil {
		return nil, 0, err
	}
	slots, err := b.pool.RunsSince(harness.Ours, marks)
	if err != nil {
		return nil, 0, err
	}
	var runs []harness.Run
	for _, r := range slots {
		runs = append(runs, r.Run)
	}
	starts, came := onNode(runs, before)
	for image := range came {
		if !before[image] {
			fetched++
		}
		b.ran[image] = true
	}
	return starts, fetched, nil
}

// onNode gives the start times of those runs whose image was on the node when they began,
// since a container had run it before, and when each image was first seen to run.
func onNode(runs []harness.Run, before map[string]bool) (starts []time.Duration, came map[string]time.Time) {
	came = map[string]time.Time{}
	for _, run := range runs {
		for _, line := range run.Lines {
			if image := imageOf(run); image != "" && strings.Contains(line.Text, "Payload container runs image ") {
				if first, ok := came[image]; !ok || line.Time.Before(first) {
					came[image] = line.Time
				}
			}
		}
	}
	for _, run := range runs {
		image := imageOf(run)
		took, ok := startTime(run)
		if ok && (before[image] || came[image].Before(run.Began)) {
			starts = append(starts, took)
		}
	}
	return starts, came
}
