//go:build pool

package chaos

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// TestPartitionableSlot: the startd cuts slots of different sizes out of one, as
// many as there are payload containers without spares, although CPUs for more are left.
// When one is free, the next job runs.
func TestPartitionableSlot(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	pool, err := harness.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	marks, err := pool.MarkLogs(harness.Ours)
	if err != nil {
		t.Fatal(err)
	}
	probe, err := pool.Probe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{2, 1, 3, 1, 1}
	if pool.Slots != 3 || !pool.Partitionable {
		t.Fatalf("the pool has %d slots (partitionable: %v); start one with: pool up --slots 3 --partitionable", pool.Slots, pool.Partitionable)
	}
	var queue strings.Builder
	for _, cpus := range sizes {
		fmt.Fprintf(&queue, "%d\n", cpus)
	}
	jobs, err := pool.Submit(ctx, harness.Submission{Name: "partitionable", Side: harness.Ours, Count: len(sizes), Files: []harness.File{probe},
		Queue: "queue cpus from (\n" + queue.String() + ")",
		Commands: strings.Join([]string{
			"executable = " + harness.ProbeName,
			`arguments = "ready forever -- $(Cluster).$(Process)"`,
			"should_transfer_files = YES",
			"request_cpus = $(cpus)", "request_memory = 32", "request_disk = 1024",
		}, "\n")})
	if err != nil {
		t.Fatal(err)
	}
	remove := func(ctx context.Context) {
		_, _ = pool.AP(ctx, "condor_rm", "-constraint", fmt.Sprintf("ClusterId == %d", jobs[0].Cluster))
	}
	t.Cleanup(func() { remove(context.Background()) })

	isReady := func(p harness.Process) bool {
		return pool.Payloads(harness.Ours, pool.PayloadUsers())(p) && jobOf(p.Args) != ""
	}
	running, err := harness.WaitSome(ctx, pool.Slots, isReady)
	if err != nil {
		t.Fatal(err)
	}
	// Running and rejected jobs are known when an idle one has been rejected after
	// the last slot was cut.
	waiting := rejected(ctx, t, jobs, running)
	slots := cutSlots(ctx, t, pool)
	if len(slots.cut) != pool.Slots || slots.payloads != 0 || slots.cpus < 1 {
		t.Errorf("%+v: want %d slots, and CPUs but no payload container left", slots, pool.Slots)
	}
	var want []int
	users := map[int]bool{}
	for _, p := range running {
		proc, _ := strconv.Atoi(strings.TrimPrefix(jobOf(p.Args), fmt.Sprintf("%d.", jobs[0].Cluster)))
		want = append(want, sizes[proc])
		users[p.UID] = true
	}
	slices.Sort(want)
	if !slices.Equal(slots.cut, want) {
		t.Errorf("the slots have %v CPUs, their jobs asked for %v", slots.cut, want)
	}
	if len(users) != pool.Slots {
		t.Errorf("%d jobs run as the users %v", len(running), users)
	}
	if now, err := harness.Processes(isReady); err != nil || len(now) != pool.Slots {
		t.Errorf("%d jobs run in %d slots (%v)", len(now), pool.Slots, err)
	}

	// One ends, one of those that wait follows.
	if _, err := pool.AP(ctx, "condor_rm", jobOf(running[0].Args)); err != nil {
		t.Fatal(err)
	}
	next := func(p harness.Process) bool { return isReady(p) && slices.Contains(waiting, jobOf(p.Args)) }
	if _, err := harness.WaitSome(ctx, 1, next); err != nil {
		t.Errorf("no other job runs in the container of one that was removed: %v", err)
	}
	remove(ctx)
	if err := harness.WaitNone(ctx, pool.Starters(harness.Ours)); err != nil {
		t.Error(err)
	}
	runs, err := pool.RunsSince(harness.Ours, marks)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		if run.Has("All payload containers of the pod are in use") {
			t.Errorf("a starter of %s found no container:\n%s", run.Slot, run.Text())
		}
	}
}

// rejected waits until the negotiator has rejected one of the jobs that do not run,
// after the last of those that run got its slot, and returns those jobs.
func rejected(ctx context.Context, t *testing.T, jobs []harness.Job, running []harness.Process) []string {
	t.Helper()
	runs := map[string]bool{}
	for _, p := range running {
		runs[jobOf(p.Args)] = true
	}
	var waiting []string
	since := time.Now().Unix()
	for _, job := range jobs {
		if runs[job.ID()] {
			continue
		}
		waiting = append(waiting, job.ID())
	}
	err := harness.Poll(ctx, "a job to be turned away", func() (bool, error) {
		for _, job := range jobs {
			if runs[job.ID()] {
				continue
			}
			ad, err := job.Ad(ctx)
			if err != nil {
				return false, err
			}
			if ad.IntOr("LastRejMatchTime", 0) > since {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return waiting
}

// cuts is what the collector knows of a partitionable slot and those cut out of it.
type cuts struct {
	cpus, payloads int   // left
	cut            []int // CPUs of each
}

func cutSlots(ctx context.Context, t *testing.T, pool *harness.Pool) cuts {
	t.Helper()
	var found cuts
	// What the collector knows is a little late; it hears of every change.
	err := harness.Poll(ctx, "the collector to know the slots", func() (bool, error) {
		text, err := pool.AP(ctx, "condor_status", "-constraint", "HasPodStarter", "-af", "PartitionableSlot =?= true", "Cpus", "Payloads")
		found = cuts{}
		for line := range strings.Lines(text) {
			var partitionable bool
			var cpus, payloads int
			if _, err := fmt.Sscan(line, &partitionable, &cpus, &payloads); err != nil {
				return false, fmt.Errorf("reading %q: %w", line, err)
			}
			if partitionable {
				found.cpus, found.payloads = cpus, payloads
				continue
			}
			found.cut = append(found.cut, cpus)
		}
		slices.Sort(found.cut)
		return len(found.cut) > 0 && found.payloads == 0, err
	})
	if err != nil {
		t.Errorf("%v: %+v", err, found)
	}
	return found
}
