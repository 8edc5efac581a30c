//go:build pool

package manyslots

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// patience is how long everything may take. It is long, since a test that passes never
// uses it up.
const patience = 5 * time.Minute

var pool *harness.Pool

func TestMain(m *testing.M) {
	os.Exit(func() int {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var err error
		if pool, err = harness.Open(ctx); err == nil && pool.Slots < 8 {
			err = fmt.Errorf("the pool has %d slots; bring it up with --slots 32", pool.Slots)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// crowd submits a job for each slot. All run the same line of a shell.
func crowd(t *testing.T, line string) []harness.Job {
	t.Helper()
	jobs, err := pool.Submit(t.Context(), harness.Submission{Name: "crowd", Side: harness.Ours, Count: pool.Slots,
		Commands: "universe = docker\ndocker_image = $(IMAGE_busybox)\nexecutable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = YES\n" +
			fmt.Sprintf("arguments = \"-c '%s'\"\n", line) +
			"output = out.$(ProcId)\nerror = err.$(ProcId)\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, _ = pool.AP(ctx, "condor_rm", fmt.Sprint(jobs[0].Cluster)) // an error if none is left
	})
	return jobs
}

// allRun waits until all of them run.
func allRun(t *testing.T, jobs []harness.Job) {
	t.Helper()
	ctx := soon(t)
	for _, job := range jobs {
		if _, err := job.WaitEvent(ctx, harness.EventExecute, 1); err != nil {
			t.Fatal(err)
		}
	}
}

// allEnd waits until all have ended well, without a second run.
func allEnd(t *testing.T, jobs []harness.Job) {
	t.Helper()
	ctx := soon(t)
	for _, job := range jobs {
		ending, err := job.WaitEnding(ctx)
		if err != nil {
			t.Fatal(err)
		}
		events, err := job.Events()
		if err != nil {
			t.Fatal(err)
		}
		if n := count(events, numbered(harness.EventExecute)); ending.String() != "exit code 0" || n != 1 {
			t.Errorf("job %s began %d times and ended with %s\n%s", job.ID(), n, ending, harness.Headlines(events))
		}
	}
}

func count[T any](all []T, keep func(T) bool) int {
	n := 0
	for _, one := range all {
		if keep(one) {
			n++
		}
	}
	return n
}

// numbered keeps the events with one of these numbers.
func numbered(numbers ...int) func(harness.Event) bool {
	return func(e harness.Event) bool { return slices.Contains(numbers, e.Number) }
}

// nothingRuns waits until no process of a job is left.
func nothingRuns(t *testing.T) {
	t.Helper()
	if err := harness.WaitNone(soon(t), pool.Payloads(harness.Ours, pool.PayloadUsers())); err != nil {
		t.Error(err)
	}
}
