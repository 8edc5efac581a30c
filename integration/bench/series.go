package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// handover is how one job of a series was followed by the next one in its slot.
type handover struct {
	slot string
	// The numbers of the two jobs in their cluster.
	before, after int
	// gap is from the end of the first job's process to the start of the second's.
	gap time.Duration
	// period is from the start of the one to the start of the other.
	period time.Duration
	// fresh says that the second job found a container that had its image already.
	fresh bool
}

// series is what is known of the jobs of one cluster.
type series struct {
	jobs      int // that ended
	cut       int // that did not in the time that a series has
	handovers []handover
	// broken counts the runs of starters without a start or an end of a job.
	broken int
}

// series runs jobs and waits until all have ended and no starter is left. Nothing reads
// the logs meanwhile. Jobs that have not ended in time are removed, and the others count:
// this is a result, too.
func (b *bencher) series(ctx context.Context, side harness.Side, tasks []task) (series, error) {
	marks, err := b.pool.MarkLogs(side)
	if err != nil {
		return series{}, err
	}
	jobs, err := b.submit(ctx, side, tasks)
	if err != nil {
		return series{}, err
	}
	inTime, cancel := context.WithTimeout(ctx, patienceOfSeries)
	defer cancel()
	s := series{}
	s.jobs, err = awaitAll(inTime, jobs)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		s.cut = len(jobs) - s.jobs
		fmt.Fprintln(os.Stderr, "not all counted:", err)
		_, err = b.pool.AP(ctx, "condor_rm", strconv.Itoa(jobs[0].Cluster))
	}
	if err != nil {
		return series{}, err
	}
	last, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := harness.WaitNone(last, b.pool.Starters(side)); err != nil {
		return series{}, err
	}
	runs, err := b.pool.RunsSince(side, marks)
	if err != nil {
		return series{}, err
	}
	s.handovers, s.broken = handoversOf(runs, jobs[0].Cluster)
	return s, nil
}

// patienceOfSeries is how long the jobs of a series may take.
const patienceOfSeries = 4 * time.Minute

// awaitAll waits until all jobs of a cluster have ended well, and says how many have ended.
func awaitAll(ctx context.Context, jobs []harness.Job) (int, error) {
	var log []byte
	err := harness.WaitFile(ctx, jobs[0].Log, func(content []byte) (bool, error) {
		log = content
		ended := count(content, harness.EventTerminated)
		return ended+count(content, harness.EventHeld)+count(content, harness.EventAborted) >= len(jobs), nil
	})
	if err != nil {
		ended := count(log, harness.EventTerminated)
		return ended, fmt.Errorf("%w: %d of %d jobs have ended", err, ended, len(jobs))
	}
	events, err := harness.ParseEvents(string(log))
	if err != nil {
		return 0, err
	}
	for _, e := range events {
		if end, ok := harness.EndingOf(e); ok && (!end.Exited || end.Code != 0) {
			job := jobs[e.Proc]
			return 0, fmt.Errorf("job %s: %s\n%s", job.ID(), end, job.Describe())
		}
	}
	return len(jobs), nil
}

// count is how many events of a kind an event log has. It is cheap, since the log is read
// after each change of it, while the machine is being measured.
func count(log []byte, event int) int {
	return bytes.Count(log, fmt.Appendf(nil, "\n%03d (", event))
}

// handoversOf finds the jobs of a cluster that followed each other in the same slot, by
// the starters' logs.
func handoversOf(runs []harness.SlotRun, cluster int) (all []handover, broken int) {
	bySlot := map[string][]harness.SlotRun{}
	for _, run := range runs {
		if strings.HasPrefix(run.Job, strconv.Itoa(cluster)+".") {
			bySlot[run.Slot] = append(bySlot[run.Slot], run)
		}
	}
	for _, slot := range slices.Sorted(maps.Keys(bySlot)) {
		inSlot := bySlot[slot]
		slices.SortStableFunc(inSlot, func(a, b harness.SlotRun) int { return a.Began.Compare(b.Began) })
		var before stay
		for _, run := range inSlot {
			now, ok := stayOf(run.Run)
			switch {
			case !ok:
				broken++
			case before.job != "":
				all = append(all, handover{
					slot: slot, before: numberOf(before.job), after: numberOf(now.job),
					gap: now.began.Sub(before.ended), period: now.began.Sub(before.began), fresh: now.fresh,
				})
			}
			before = now
		}
	}
	return all, broken
}

// stay is how a job's process was in its slot.
type stay struct {
	job          string
	began, ended time.Time
	fresh        bool
}

// stayOf reads the log of a starter. It is empty for a run in which no process started and
// ended.
func stayOf(run harness.Run) (s stay, ok bool) {
	for _, line := range run.Lines {
		switch {
		case strings.HasPrefix(line.Text, "Create_Process succeeded"):
			s.began = line.Time
		case strings.HasPrefix(line.Text, "Process exited"):
			s.ended = line.Time
		case strings.HasPrefix(line.Text, "Binding: container ") && strings.HasSuffix(line.Text, " already"):
			s.fresh = true
		}
	}
	if s.began.IsZero() || s.ended.IsZero() {
		return stay{}, false
	}
	s.job = run.Job
	return s, true
}

// numberOf is the number of a job in its cluster.
func numberOf(job string) int {
	_, number, _ := strings.Cut(job, ".")
	n, _ := strconv.Atoi(number)
	return n
}

// resize gives the pool another number of slots and spares, and looks at it anew: its
// execution points are others then.
func (b *bencher) resize(ctx context.Context, slots, spares int, partitionable bool) error {
	err := b.pool.Up(ctx, "--slots", strconv.Itoa(slots), "--spares", strconv.Itoa(spares), fmt.Sprintf("--partitionable=%t", partitionable))
	if err != nil {
		return err
	}
	b.pool, err = harness.Open(ctx)
	return err
}

// configure writes what starters of a side read when they start.
func (b *bencher) configure(ctx context.Context, side harness.Side, lines ...string) error {
	_, err := b.pool.EPInput(ctx, side, strings.NewReader(strings.Join(lines, "\n")+"\n"), "sh", "-c", `cat > "$1"`, "configure", configFile)
	return err
}

// unconfigure removes that again.
func (b *bencher) unconfigure(ctx context.Context, side harness.Side) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if _, err := b.pool.EP(ctx, side, "rm", "-f", configFile); err != nil {
		fmt.Fprintln(os.Stderr, "a starter's configuration stays behind:", err)
	}
}

// ordinaryLog makes a starter log as it does by default, with fractions of a second: the
// pool of the tests makes it log everything, which costs time.
const ordinaryLog = "STARTER_DEBUG = D_SUB_SECOND"

// sparing is the configuration of a starter of ours that has so many spares beside the
// containers of the slots.
func sparing(containers []string, slots, spares int) []string {
	return []string{
		ordinaryLog,
		"POD_STARTER_CONTAINERS = " + strings.Join(containers[:slots+spares], ", "),
		"POD_STARTER_SPARES = " + strconv.Itoa(spares),
		// So that no series has the look-up of a tag and another has none.
		"POD_STARTER_DIGEST_LIFETIME = 86400",
	}
}
