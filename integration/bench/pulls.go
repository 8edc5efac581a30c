package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/measured"
	"podstarter/integration/podfailures"
)

// pullsPart is the name of the part.
const pullsPart = "pulls"

var (
	pullRuns   = flag.Int("pull-runs", 20, "pulls: runs of a job beside another")
	pullJobs   = flag.Int("pull-jobs", 120, "pulls: jobs in images at random")
	pullImages = flag.Int("pull-images", 40, "pulls: images")
	pullSize   = flag.Int("pull-size", 50, "pulls: MB of each image")
	pullRate   = flag.Int("pull-rate", 20, "pulls: MB a second that the registry sends")
	pullSlots  = flag.Int("pull-slots", 16, "pulls: slots for these jobs")
	pullSpares = flag.Int("pull-spares", 0, "pulls: spares")
)

// pullers is how many pullers the pods have.
const pullers = 2

// pullBench measures how long jobs whose image is on the node wait for their process
// while other slots' images are pulled.
type pullBench struct {
	pool  *harness.Pool
	probe harness.File
	ran   map[string]bool // images
	pullResults
}

// pullResults are those times, from the start of the starter to that of the process.
type pullResults struct {
	when    time.Time
	machine string
	spares  int
	// In a pod with two slots, beside a job that runs, and one whose image hangs.
	beside, besideHung []time.Duration
	// In a pod with many: nobody else, all jobs when all images are on the node, and those
	// whose image is while others come by pullers or to payload containers.
	alone, there, withPullers, without []time.Duration
	// fetched is how many images came while the last two were measured.
	fetched [2]int
}

func pulls(ctx context.Context) (err error) {
	b := &pullBench{ran: map[string]bool{}, pullResults: pullResults{when: time.Now(), machine: measured.Machine(), spares: *pullSpares}}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"pool with two slots", func(ctx context.Context) error { return b.open(ctx, 2) }},
		{"beside a job that runs, and one whose image hangs", b.neighbours},
		{"pool with many slots", func(ctx context.Context) error { return b.open(ctx, *pullSlots) }},
		{"images at random", b.random},
	} {
		began := time.Now()
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(began).Seconds(), step.name)
	}
	text := b.tables()
	if _, err := os.Stdout.WriteString(text); err != nil || *docs == "" {
		return err
	}
	return measured.Write(filepath.Join(*docs, "pulls.md"), "make bench-pulls", text)
}

// open brings up a pool with so many slots.
func (b *pullBench) open(ctx context.Context, slots int) (err error) {
	if b.pool, err = harness.Open(ctx); err != nil {
		return err
	}
	if err := b.pool.Up(ctx, "--slots", strconv.Itoa(slots), "--spares", strconv.Itoa(*pullSpares), "--pullers", strconv.Itoa(pullers),
		"--partitionable=false", "--mode", "shared", "--network", "host"); err != nil {
		return err
	}
	if b.pool, err = harness.Open(ctx); err != nil {
		return err
	}
	b.probe, err = b.pool.Probe(ctx)
	return err
}

// jobs submits a job for each image, with the steps of each.
func (b *pullBench) jobs(ctx context.Context, images, steps []string) ([]harness.Job, error) {
	var queue strings.Builder
	for i, image := range images {
		fmt.Fprintf(&queue, "%s, %s\n", image, steps[i%len(steps)])
	}
	return b.pool.Submit(ctx, harness.Submission{
		Name: "bench", Side: harness.Ours, Count: len(images), Files: []harness.File{b.probe},
		Commands: "universe = docker\ndocker_image = $(image)\nexecutable = " + harness.ProbeName + "\narguments = \"$(steps)\"\nshould_transfer_files = YES\n" +
			"output = out.$(Process)\nrequest_cpus = 1\nrequest_memory = 32\nrequest_disk = 16M\n",
		Queue: "queue image, steps from (\n" + queue.String() + ")",
	})
}

// remove removes jobs at the end of a measurement.
func (b *pullBench) remove(jobs []harness.Job) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, job := range jobs {
		if _, err := b.pool.AP(ctx, "condor_rm", job.ID()); err != nil {
			return err
		}
	}
	return harness.WaitNone(ctx, b.pool.Starters(harness.Ours))
}

// row gives the start times of n jobs, one after another in the one slot that is left, in
// a pod that is quiet when each starts. The first, which pulls its image, does not count.
func (b *pullBench) row(ctx context.Context, n int) ([]time.Duration, error) {
	images := make([]string, n+1)
	for i := range images {
		images[i] = b.pool.Image(imageA)
	}
	jobs, err := b.jobs(ctx, images, []string{"sleep=" + calm.String()})
	if err != nil {
		return nil, err
	}
	var all []time.Duration
	for _, job := range jobs {
		run, err := finish(ctx, job)
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, job.Describe())
		}
		if took, ok := startTime(run); ok && job.Proc > 0 {
			all = append(all, took)
		}
	}
	if len(all) != n {
		return nil, fmt.Errorf("%d jobs, but the logs tell of %d starts", n, len(all))
	}
	return all, nil
}

// startTime is the time from the start of a starter to that of its job's process.
func startTime(run harness.Run) (time.Duration, bool) {
	for _, line := range run.Lines {
		if strings.HasPrefix(line.Text, "Create_Process succeeded") {
			return line.Time.Sub(run.Began), true
		}
	}
	return 0, false
}

// neighbours measures the jobs of one slot of two.
func (b *pullBench) neighbours(ctx context.Context) error {
	running, err := b.jobs(ctx, []string{b.pool.Image(imageB)}, []string{"ready forever"})
	if err != nil {
		return err
	}
	inside := b.pool.Payloads(harness.Ours, b.pool.PayloadUsers())
	if _, err := harness.WaitSome(ctx, 1, inside); err != nil {
		return err
	}
	b.beside, err = b.row(ctx, *pullRuns)
	if err := errors.Join(err, b.remove(running)); err != nil {
		return err
	}
	registry, err := podfailures.NewRegistry("127.0.0.1", false)
	if err != nil {
		return err
	}
	defer registry.Close()
	name := fmt.Sprintf("bench-%d", b.when.UnixNano())
	held, err := b.jobs(ctx, []string{registry.Image("hold", name)}, []string{"out=done"})
	if err != nil {
		return err
	}
	if err := harness.Poll(ctx, "a pull that hangs", func() (bool, error) { return registry.Asked(name), nil }); err != nil {
		return err
	}
	b.besideHung, err = b.row(ctx, *pullRuns)
	registry.Release(name)
	if err == nil {
		_, err = finish(ctx, held[0])
	}
	return err
}
