//go:build pool

package compare

import (
	"context"
	"slices"
	"testing"
	"time"

	"podstarter/integration/harness"
)

const patience = 3 * time.Minute

// TestSameJobsUnderBothStarters runs all jobs under the stock starter and ours,
// both execution points at work at the same time.
func TestSameJobsUnderBothStarters(t *testing.T) {
	pool, err := harness.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !pool.HasStock() {
		t.Fatal("the pool has no execution point with the stock starter; start one with: make pool-up")
	}
	probe, err := pool.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	submit := func(j Job, side harness.Side) harness.Job {
		job, err := pool.SubmitOne(t.Context(), j.Submission(side, probe))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if t.Failed() {
				// Nothing of it may stay behind for other tests.
				_ = job.Tool(context.Background(), "condor_rm")
			}
		})
		return job
	}
	stock, ours := make([]harness.Job, len(Jobs)), make([]harness.Job, len(Jobs))
	for i, j := range Jobs {
		stock[i], ours[i] = submit(j, harness.Stock), submit(j, harness.Ours)
	}
	var found []Difference
	var names []string
	for i, j := range Jobs {
		names = append(names, j.Name)
		a, b := observe(t, pool, j, stock[i]), observe(t, pool, j, ours[i])
		found = append(found, Lines(j.Name, a.events, b.events)...)
		found = append(found, Values(j.Name, InHistory, a.history, b.history)...)
		found = append(found, Values(j.Name, InSeen, a.seen, b.seen)...)
	}
	unlisted, stale := Judge(rules, names, found)
	for _, d := range unlisted {
		t.Errorf("a difference that differences.json does not list: %s", d)
	}
	for _, rule := range stale {
		t.Errorf("differences.json lists what does not show any more: %s", rule)
	}
}

// observation is what is compared of a job under one starter.
type observation struct {
	events        []string
	history, seen map[string]string
}

func observe(t *testing.T, pool *harness.Pool, j Job, job harness.Job) observation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	fail := func(err error) {
		t.Helper()
		t.Fatalf("job %s: %v\n%s", j.Name, err, job.Describe())
	}
	if j.Remove || j.Vacate {
		if _, err := job.WaitEvent(ctx, harness.EventExecute, 1); err != nil {
			fail(err)
		}
		if _, err := harness.WaitSome(ctx, 1, pool.Ready(job.Side)); err != nil {
			fail(err)
		}
		tool := "condor_rm"
		if j.Vacate {
			tool = "condor_vacate_job"
		}
		if err := job.Tool(ctx, tool); err != nil {
			fail(err)
		}
	}
	end, err := job.WaitEnding(ctx)
	if err != nil {
		fail(err)
	}
	if end.Held {
		// Only what leaves the queue comes into the history.
		if err := job.Tool(ctx, "condor_rm"); err != nil {
			fail(err)
		}
		if _, err := job.WaitEvent(ctx, harness.EventAborted, 1); err != nil {
			fail(err)
		}
	}
	ad, err := job.History(ctx)
	if err != nil {
		fail(err)
	}
	events, err := job.Events()
	if err != nil {
		fail(err)
	}
	seen := observation{events: Events(events, job), history: History(ad, job)}
	for _, name := range j.Fleeting {
		delete(seen.history, name)
		seen.events = slices.DeleteFunc(seen.events, func(line string) bool { return line == name })
	}
	if j.Facts {
		f, err := job.Facts("out")
		if err != nil {
			fail(err)
		}
		seen.seen = Seen(f, job)
	}
	return seen
}
