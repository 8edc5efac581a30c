package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
	"podstarter/integration/measured"
)

// Names of processes, as the process table has them.
const (
	shadowComm = "condor_shadow"
	startdComm = "condor_startd"
	scheddComm = "condor_schedd"
)

// way is the direction of a transfer.
type way int

const (
	input way = iota
	output
	ways
)

func (w way) String() string { return [...]string{"input", "output"}[w] }

// moved is the cost of bringing a load in, or of sending it back.
type moved struct {
	wall            time.Duration
	starter, shadow time.Duration // CPU time
}

// trip is one job: its load came in and went back.
type trip struct {
	ways [ways]moved
	peak int64 // of the starter's resident memory, KiB
}

// transferResults are the trips by load and side.
type transferResults struct {
	when    time.Time
	machine string
	smaller int // the loads are that many times smaller than those of the aims
	loads   []load
	trips   map[string]map[harness.Side][]trip
	broken  int // trips that went wrong, and were made again
}

const (
	quickly        = 20 // times smaller are the loads of a quick run
	patienceOfTrip = 10 * time.Minute
	attempts       = 3                // at one trip
	heavy          = 10 * 1000 * 1000 // bytes of a load that shows where memory comes from
)

// transfers moves loads in and out under both starters, in another order in each round.
func (b *bencher) transfers(ctx context.Context, rounds, smaller int, only, sides string) (*transferResults, error) {
	r := &transferResults{when: time.Now(), machine: measured.Machine() + ", files on " + measured.Filesystem(b.pool.State), smaller: smaller, trips: map[string]map[harness.Side][]trip{}}
	for _, l := range loads(smaller) {
		if only == "" || slices.Contains(strings.Split(only, ","), l.name) {
			r.loads = append(r.loads, l)
			r.trips[l.name] = map[harness.Side][]trip{}
		}
	}
	data := filepath.Join(b.pool.User.Visible, "bench-data")
	defer os.RemoveAll(data)
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, err
	}
	for _, l := range r.loads {
		if err := l.make(data); err != nil {
			return nil, fmt.Errorf("making %s: %w", l.title, err)
		}
	}
	restore, err := b.quietLogs(ctx)
	if err != nil {
		return nil, err
	}
	defer restore()
	if err := b.warmTransfers(ctx); err != nil {
		return nil, err
	}
	weight, err := newBallast()
	if err != nil {
		return nil, err
	}
	defer weight.close()
	type turn struct {
		load load
		side harness.Side
	}
	for round := range rounds {
		var turns []turn
		for _, l := range r.loads {
			for _, side := range []harness.Side{harness.Ours, harness.Stock} {
				if sides == "" || sides == string(side) {
					turns = append(turns, turn{l, side})
				}
			}
		}
		rand.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		for _, t := range turns {
			if t.load.total() >= heavy {
				if err := weight.fill(); err != nil {
					return r, err
				}
			}
			one, err := b.tripAtLast(ctx, r, t.side, t.load)
			if err != nil {
				return r, fmt.Errorf("round %d: %s under %s, %d times: %w", round+1, t.load.title, t.side, attempts, err)
			}
			fmt.Fprintf(os.Stderr, "round %d: %-8s %-5s in %6.3f s (starter %6.3f s, shadow %6.3f s)  out %6.3f s (%6.3f s, %6.3f s)  %5.1f MiB\n", round+1, t.load.name, t.side,
				one.ways[input].wall.Seconds(), one.ways[input].starter.Seconds(), one.ways[input].shadow.Seconds(),
				one.ways[output].wall.Seconds(), one.ways[output].starter.Seconds(), one.ways[output].shadow.Seconds(), float64(one.peak)/1024)
			r.trips[t.load.name][t.side] = append(r.trips[t.load.name][t.side], one)
		}
	}
	return r, nil
}

// tripAtLast repeats a trip that failed, so that one job does not spoil an hour of
// measuring. The failure is logged and counted.
func (b *bencher) tripAtLast(ctx context.Context, r *transferResults, side harness.Side, l load) (one trip, err error) {
	for range attempts {
		if one, err = b.trip(ctx, side, l); err == nil || ctx.Err() != nil {
			return one, err
		}
		r.broken++
		fmt.Fprintf(os.Stderr, "not counted: %s under %s: %v\n", l.title, side, err)
	}
	return one, err
}

// remove removes a job that is not measured any more, and waits for the end of its
// processes.
func (b *bencher) remove(ctx context.Context, side harness.Side, job harness.Job) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = job.Tool(ctx, "condor_rm") // fails if it has ended
	return harness.WaitNone(ctx, b.pool.Starters(side))
}

// quietLogs makes starters log by their defaults: the pool of the tests makes them log
// everything, which costs time. Event logs get times with milliseconds.
func (b *bencher) quietLogs(ctx context.Context) (restore func(), err error) {
	const events = "DEFAULT_USERLOG_FORMAT_OPTIONS = ISO_DATE SUB_SECOND\n"
	if _, err := b.pool.APRoot(ctx, strings.NewReader(events), "sh", "-c", `cat > "$1"`, "configure", configFile); err != nil {
		return nil, err
	}
	for _, side := range []harness.Side{harness.Ours, harness.Stock} {
		if _, err := b.pool.EPInput(ctx, side, strings.NewReader("STARTER_DEBUG =\n"), "sh", "-c", `cat > "$1"`, "configure", configFile); err != nil {
			return nil, err
		}
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		for _, side := range []harness.Side{harness.Ours, harness.Stock} {
			_, _ = b.pool.EP(ctx, side, "rm", "-f", configFile)
		}
		_, _ = b.pool.APRoot(ctx, nil, "rm", "-f", configFile)
	}, nil
}

// warmTransfers runs a job on each side that is not measured.
func (b *bencher) warmTransfers(ctx context.Context) error {
	for _, side := range []harness.Side{harness.Ours, harness.Stock} {
		if _, err := b.runs(ctx, side, "out=done", nil, 1); err != nil {
			return err
		}
	}
	return nil
}

// trip runs one job, and removes its files.
func (b *bencher) trip(ctx context.Context, side harness.Side, l load) (trip, error) {
	ctx, cancel := context.WithTimeout(ctx, patienceOfTrip)
	defer cancel()
	startd := b.pool.Inside(side)
	c, err := newCost(func(p harness.Process) bool {
		return p.Comm == startdComm && startd(p) || p.Comm == scheddComm && p.Namespace == b.pool.SubmitNamespace
	}, side.StarterComm(), shadowComm)
	if err != nil {
		return trip{}, err
	}
	// Do not let data of earlier jobs be written to the disk during this one.
	unix.Sync()
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { c.watch(watching); close(watched) }()
	defer func() { stop(); <-watched }()
	job, err := b.pool.SubmitOne(ctx, harness.Submission{
		Name: "transfer", Side: side,
		// While it sleeps, the cost of the input is read.
		Commands: "executable = " + harness.ProbeName + "\narguments = \"sleep=1500ms\"\nshould_transfer_files = YES\ntransfer_executable = True\n" +
			"transfer_input_files = " + filepath.Join(b.pool.User.Home, "bench-data", l.name) + "\ntransfer_output_files = " + l.name + "\n" +
			"output = out\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n",
		Files: []harness.File{b.probe},
	})
	if err != nil {
		return trip{}, err
	}
	defer os.RemoveAll(job.Dir)
	t, err := follow(ctx, job, c, side)
	if err == nil {
		// The starter still works after the shadow's last word.
		err = harness.WaitNone(ctx, b.pool.Starters(side))
	}
	if err == nil {
		t.ways[output].starter = c.cpu(side.StarterComm()) - t.ways[input].starter
		t.ways[output].shadow = c.cpu(shadowComm) - t.ways[input].shadow
		t.peak = c.peak(side.StarterComm())
		err = t.complete()
	}
	if err == nil {
		err = l.check(job.Dir)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, job.Describe())
		return t, errors.Join(err, b.remove(ctx, side, job))
	}
	return t, nil
}

// follow measures a job by its events. The shadow writes all of them, in the same way for
// any starter.
func follow(ctx context.Context, job harness.Job, c *cost, side harness.Side) (trip, error) {
	var t trip
	seen := 0
	var began [ways]moment
	var ended harness.Ending
	_, err := job.WaitEvents(ctx, "its transfers", func(events []harness.Event) bool {
		now := time.Now()
		for ; seen < len(events); seen++ {
			e := events[seen]
			starter, shadow := c.cpu(side.StarterComm()), c.cpu(shadowComm)
			at := momentOf(e, now)
			switch {
			case e.Number == harness.EventFileTransfer && strings.HasPrefix(e.Headline, "Started transferring input"):
				began[input] = at
			case e.Number == harness.EventFileTransfer && strings.HasPrefix(e.Headline, "Finished transferring input"):
				t.ways[input].wall = at.since(began[input])
			case e.Number == harness.EventExecute:
				t.ways[input].starter, t.ways[input].shadow = starter, shadow
			case e.Number == harness.EventFileTransfer && strings.HasPrefix(e.Headline, "Started transferring output"):
				began[output] = at
			case e.Number == harness.EventFileTransfer && strings.HasPrefix(e.Headline, "Finished transferring output"):
				t.ways[output].wall = at.since(began[output])
			}
			if ending, ok := harness.EndingOf(e); ok {
				ended = ending
				return true
			}
		}
		return false
	})
	if err != nil {
		return t, err
	}
	if !ended.Exited || ended.Code != 0 {
		return t, fmt.Errorf("the job: %s", ended)
	}
	return t, nil
}

// moment is when an event was written.
type moment struct {
	told time.Time // by the event, zero if that has whole seconds only
	seen time.Time
}

// stampLayout is that of SUB_SECOND (HTCondor condor_event.cpp: formatHeader).
const stampLayout = "2006-01-02 15:04:05.000"

func momentOf(e harness.Event, seen time.Time) moment {
	// A shadow that is older than its configuration tells seconds.
	told, err := time.Parse(stampLayout, e.Stamp)
	if err != nil {
		told = time.Time{}
	}
	return moment{told: told, seen: seen}
}

// shortest stands for a time too short for the events to show.
const shortest = time.Millisecond / 2

// since returns the time between two events, 0 if there was no earlier one.
func (m moment) since(earlier moment) time.Duration {
	switch {
	case earlier.seen.IsZero():
		return 0
	case m.told.IsZero() || earlier.told.IsZero():
		return m.seen.Sub(earlier.seen)
	}
	return max(m.told.Sub(earlier.told), shortest)
}

// complete says what is missing in the events of a job that ended well.
func (t *trip) complete() error {
	for w, m := range t.ways {
		if m.wall <= 0 || m.starter <= 0 || m.shadow <= 0 {
			return fmt.Errorf("not all measurements of the %s were seen: %+v", way(w), m)
		}
	}
	if t.peak <= 0 {
		return errors.New("the memory of the starter has not been seen")
	}
	return nil
}
