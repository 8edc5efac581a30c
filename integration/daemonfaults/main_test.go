//go:build pool

package daemonfaults

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// What every test uses; set once, before the first.
var (
	pool  *harness.Pool
	probe harness.File
)

// sides are the execution points that meet the same faults.
var sides = []harness.Side{harness.Stock, harness.Ours}

// patience is how long a job may take from one moment to the next, faults included.
// It is long, since a test that passes never uses it up.
var patience = flag.Duration("patience", 3*time.Minute, "how long anything may take")

func TestMain(m *testing.M) {
	flag.Parse()
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func prepare(ctx context.Context) error {
	var err error
	if pool, err = harness.Open(ctx); err != nil {
		return err
	}
	if !pool.HasStock() || pool.Slots < 3 {
		return fmt.Errorf("the pool has %d slots and a stock execution point: %v; start one with: pool up --stock --slots 3", pool.Slots, pool.HasStock())
	}
	probe, err = pool.Probe(ctx)
	return err
}

// both runs the same on both execution points at the same time.
func both(t *testing.T, do func(t *testing.T, side harness.Side)) {
	t.Helper()
	t.Run("sides", func(t *testing.T) {
		for _, side := range sides {
			t.Run(string(side), func(t *testing.T) {
				t.Parallel()
				do(t, side)
			})
		}
	})
}

// lasting are the steps of a job that exits with code 7 when it is told to end.
const lasting = "trap=caught:7 ready forever"

// readyName is the name of a job's process when it can do nothing more by itself.
const readyName = facts.Ready

// submit submits the probe with these steps, and describes the job when the test
// fails. When the test ends, the job is removed from the queue.
func submit(t *testing.T, side harness.Side, name, steps string, commands ...string) harness.Job {
	t.Helper()
	return submitWith(t, side, name, steps, nil, commands...)
}

func submitWith(t *testing.T, side harness.Side, name, steps string, files []harness.File, commands ...string) harness.Job {
	t.Helper()
	job, err := pool.SubmitOne(t.Context(), harness.Submission{
		Name: "faults-" + name, Side: side, Files: append([]harness.File{probe}, files...),
		Commands: strings.Join(append([]string{
			"executable = " + harness.ProbeName,
			`arguments = "` + steps + ` -- $(Cluster).$(Process)"`,
			"should_transfer_files = YES",
			"output = out",
			"error = err",
			"request_cpus = 1",
			"request_memory = 64",
			"request_disk = 512M",
			"job_max_vacate_time = 2",
		}, commands...), "\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if t.Failed() {
			t.Logf("%s: %s", name, job.Describe())
		}
		_, _ = pool.AP(ctx, "condor_rm", "-constraint", fmt.Sprintf("ClusterId == %d", job.Cluster))
	})
	return job
}

// soon is a context for something that the test waits for.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), *patience)
	t.Cleanup(cancel)
	return ctx
}

// of keeps the main processes of a job.
func of(job harness.Job) func(harness.Process) bool {
	users := pool.Payloads(job.Side, pool.PayloadUsers())
	return func(p harness.Process) bool { return slices.Contains(p.Args, job.ID()) && users(p) }
}

// running waits until the job runs, and returns its process.
func running(t *testing.T, job harness.Job) harness.Process {
	t.Helper()
	mine := of(job)
	some, err := harness.WaitSome(soon(t), 1, func(p harness.Process) bool { return p.Comm == readyName && mine(p) })
	if err != nil {
		t.Fatalf("job %s of the %s side: %v", job.ID(), job.Side, err)
	}
	return some[0]
}

// event waits for the n-th event of a kind.
func event(t *testing.T, job harness.Job, number, n int) {
	t.Helper()
	if _, err := job.WaitEvent(soon(t), number, n); err != nil {
		t.Fatalf("the %s side: %v", job.Side, err)
	}
}

// kill sends a signal.
func kill(t *testing.T, p harness.Process, signal unix.Signal) {
	t.Helper()
	if err := harness.Kill(p, signal); err != nil {
		t.Fatal(err)
	}
}

// finish has a job end, and waits until its process has.
func finish(t *testing.T, job harness.Job) {
	t.Helper()
	kill(t, running(t, job), unix.SIGTERM)
	if err := harness.WaitNone(soon(t), of(job)); err != nil {
		t.Fatal(err)
	}
}

// ended waits for the end of a job, which must be an exit with the code.
func ended(t *testing.T, job harness.Job, code int) []harness.Event {
	t.Helper()
	end, err := job.WaitEnding(soon(t))
	if err != nil {
		t.Fatalf("the %s side: %v", job.Side, err)
	}
	if !end.Exited || end.Code != code {
		t.Errorf("job %s of the %s side: %s, want exit code %d", job.ID(), job.Side, end, code)
	}
	events, err := job.Events()
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// count is how many events of a kind there are.
func count(events []harness.Event, number int) int {
	n := 0
	for _, e := range events {
		if e.Number == number {
			n++
		}
	}
	return n
}

// numbers are the kinds of events that tell a job's way, in their order.
func numbers(events []harness.Event) string {
	var out []string
	for _, e := range events {
		switch e.Number {
		case harness.EventImageSize, harness.EventFileTransfer:
		default:
			out = append(out, fmt.Sprintf("%03d", e.Number))
		}
	}
	return strings.Join(out, " ")
}

// submitSide keeps the processes of the submit side of this name.
func submitSide(comm string) func(harness.Process) bool {
	return func(p harness.Process) bool { return p.Comm == comm && p.Namespace == pool.SubmitNamespace }
}

// daemon is the one process of this name in an execution point.
func daemon(t *testing.T, side harness.Side, comm string) harness.Process {
	t.Helper()
	inside := pool.Inside(side)
	const longest = 15 // of names in the process table
	if len(comm) > longest {
		comm = comm[:longest]
	}
	found, err := harness.One(comm+" of the "+string(side)+" side", func(p harness.Process) bool { return p.Comm == comm && inside(p) })
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// nothingLeft waits until no starter, payload or sandbox is left.
func nothingLeft(t *testing.T, side harness.Side) {
	t.Helper()
	for what, keep := range map[string]func(harness.Process) bool{
		"starters": pool.Starters(side), "payloads": pool.Payloads(side, pool.PayloadUsers()),
	} {
		if err := harness.WaitNone(soon(t), keep); err != nil {
			t.Errorf("%s of the %s side are left: %v", what, side, err)
		}
	}
	names := ""
	err := harness.Poll(soon(t), "the sandboxes to go", func() (bool, error) {
		var err error
		names, err = pool.EP(t.Context(), side, "sh", "-c", `ls "$(condor_config_val EXECUTE)"`)
		return strings.TrimSpace(names) == "", err
	})
	if err != nil {
		t.Errorf("the %s side: %v: %s", side, err, names)
	}
}

// witness watches the payloads until the returned function is called. A job with
// processes under two starters at once has run twice.
func witness(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	looking.Go(func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			found, err := harness.Processes(func(p harness.Process) bool {
				// One that is about to be reaped has no arguments any more.
				return p.Comm == readyName && len(p.Args) > 0 && (pool.Payloads(harness.Ours, pool.PayloadUsers())(p) || pool.Payloads(harness.Stock, pool.Slots)(p))
			})
			if err != nil {
				t.Errorf("looking at the payloads: %v", err)
				return
			}
			seen := map[string]harness.Process{}
			for _, p := range harness.Eldest(found) {
				id := p.Args[len(p.Args)-1]
				if other, ok := seen[id]; ok {
					t.Errorf("job %s runs twice at once: %v and %v", id, other, p)
					return
				}
				seen[id] = p
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return func() { cancel(); looking.Wait() }
}

// shadowOf is the job's present shadow.
func shadowOf(t *testing.T, job harness.Job) harness.Process {
	t.Helper()
	shadow, err := job.Shadow()
	if err != nil {
		t.Fatal(err)
	}
	return shadow
}

// slotOf is the slot that the queue has for a job.
func slotOf(t *testing.T, job harness.Job) string {
	t.Helper()
	slot := ""
	err := harness.Poll(soon(t), "a slot for job "+job.ID(), func() (bool, error) {
		host, err := pool.AP(t.Context(), "condor_q", job.ID(), "-af", "RemoteHost")
		slot, _, _ = strings.Cut(host, "@")
		return strings.HasPrefix(slot, "slot"), err
	})
	if err != nil {
		t.Fatal(err)
	}
	return slot
}

// starterOf is the starter that runs a job.
func starterOf(t *testing.T, job harness.Job) harness.Process {
	t.Helper()
	slot, starters := slotOf(t, job), pool.Starters(job.Side)
	some, err := harness.WaitSome(soon(t), 1, func(p harness.Process) bool { return slices.Contains(p.Args, slot) && starters(p) })
	if err != nil {
		t.Fatalf("looking for the starter of job %s: %v", job.ID(), err)
	}
	return some[0]
}

// inLog waits for a line in the log of the job's starter.
func inLog(t *testing.T, job harness.Job, text string) {
	t.Helper()
	slot := slotOf(t, job)
	starter := starterOf(t, job)
	err := harness.Poll(soon(t), text, func() (bool, error) {
		all, err := pool.RunsSince(job.Side, harness.LogMarks{})
		return slices.ContainsFunc(all, func(run harness.SlotRun) bool {
			return run.Slot == slot && run.PID == starter.Inner && run.Has(text)
		}), err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// logged waits for an event of the job whose headline ends in one of these ways.
func logged(t *testing.T, job harness.Job, headlines ...string) {
	t.Helper()
	_, err := job.WaitEvents(soon(t), headlines[0], func(events []harness.Event) bool {
		return slices.ContainsFunc(events, func(e harness.Event) bool {
			return slices.ContainsFunc(headlines, func(h string) bool { return strings.HasSuffix(e.Headline, h) })
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}
