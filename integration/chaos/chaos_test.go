//go:build pool

package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/podfailures"
)

var (
	seedFlag = flag.Uint64("seed", 0, "seed of the kills and of the jobs; 0 for a new one")
	jobsFlag = flag.Int("jobs", 300, "how many jobs")
	defaults = flag.Bool("defaults", false, "leave slots their rest after failures, and daemons their own intervals; choose a longer -mean")
	meanFlag = flag.Duration("mean", 2*time.Second, "mean time between two kills")
)

// patience is how long everything may take. It is long, since a test that passes
// never uses it up.
const patience = 15 * time.Minute

// TestChaos kills starters, wrappers and payloads, and pullers if the pool has some, as
// long as there are jobs in the queue. Then the checker reads from the logs and outputs that every job ended
// right, ran to its end once, and ran alone.
func TestChaos(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: repeat the choices with -seed %d", seed, seed)
	random := rand.New(rand.NewPCG(seed, seed))
	pool, err := harness.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	containers, err := pool.Containers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(containers) < 2 {
		t.Fatalf("the pool has the payload containers %v; start one with: pool up --slots 3 --partitionable", containers)
	}
	configure(t, pool)
	marks, err := pool.MarkLogs(harness.Ours)
	if err != nil {
		t.Fatal(err)
	}
	c := &chaos{pool: pool, users: len(containers), base: pool.PayloadUID(harness.Ours), random: random, mean: *meanFlag, spans: map[processKey]*Sighting{}}
	if c.notes, err = openNotes(pool, containers); err != nil {
		t.Fatal(err)
	}
	var registry *podfailures.Registry
	if pool.Pullers > 0 {
		if c.pullers, err = pool.InPullers(ctx); err != nil {
			t.Fatal(err)
		}
		if registry, err = podfailures.NewRegistry("127.0.0.1", false); err != nil {
			t.Fatal(err)
		}
		defer registry.Close()
	}
	apiLog, err := pool.APILog()
	if err != nil {
		t.Fatal(err)
	}
	submission, jobs := theJobs(t, pool, random, images(pool, registry, seed))
	began := time.Now()
	submitted, err := pool.Submit(ctx, submission)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, _ = pool.AP(ctx, "condor_rm", "-constraint", fmt.Sprintf("ClusterId == %d", submitted[0].Cluster))
	})
	for i := range jobs {
		jobs[i].ID = submitted[i].ID()
	}
	e := Evidence{Jobs: jobs, Users: map[string]int{}, Spares: pool.Spares, Pullers: pool.Pullers > 0}
	for i, name := range containers {
		e.Users[name] = c.base + i
	}
	c.during(ctx, t, func(ctx context.Context) error {
		e.Events, err = waitAll(ctx, submitted)
		return err
	})
	took := time.Since(began)
	gather(ctx, t, pool, c, marks, submitted, &e)
	if registry != nil {
		e.Fetches = registry.Fetched()
	}
	if e.Slots, err = c.notes.slots(ctx, pool); err != nil {
		t.Error(err)
	}
	if e.Specs, err = specs(ctx, pool, containers); err != nil {
		t.Error(err)
	}
	if e.Patches, err = patches(apiLog); err != nil {
		t.Error(err)
	}
	violations := Check(e)
	tell(t, e, took)
	for i, v := range violations {
		if i == 30 {
			t.Errorf("and %d more", len(violations)-i)
			break
		}
		t.Error(v)
	}
	if len(violations) > 0 {
		t.Log(submitted[0].Dir)
	}
}

// configure makes slots accept jobs after failures too, but with -defaults: a slot that
// loses its container under a job rests for ten seconds and more, and there is little
// left to kill.
func configure(t *testing.T, pool *harness.Pool) {
	t.Helper()
	lines := "POD_STARTER_MAX_REST = 0\n"
	if *defaults {
		lines = harness.DefaultsExecute
	}
	const file = "/etc/condor/config.d/99-z-chaos.conf"
	set := func(script string) error {
		_, err := pool.EPInput(context.Background(), harness.Ours, strings.NewReader(lines), "sh", "-c", script+" && condor_reconfig", "configure", file)
		return err
	}
	if err := set(`cat > "$1"`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set(`rm -f "$1"`); err != nil {
			t.Error(err)
		}
	})
}

// theJobs are the jobs to submit and their expected results, except their numbers.
// A killed job goes back to the queue, by its own policy; one that ends by itself
// leaves it, right or wrong.
func theJobs(t *testing.T, pool *harness.Pool, random *rand.Rand, images func(*rand.Rand) image) (harness.Submission, []Job) {
	t.Helper()
	probe, err := pool.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := harness.Submission{Name: "chaos", Side: harness.Ours, Count: *jobsFlag, Files: []harness.File{probe}}
	var jobs []Job
	var queue strings.Builder
	queue.WriteString("queue contained,image,pause,stray,input from (\n")
	for i := range *jobsFlag {
		token := make([]byte, 32)
		for k := range token {
			token[k] = byte(random.Uint32())
		}
		image := images(random)
		stray := "out="
		if random.IntN(5) == 0 {
			stray = "detach=1" // a process that the job leaves behind
		}
		sum := sha256.Sum256(token)
		job := Job{Image: image.name, Input: fmt.Sprintf("%s%d", inputPrefix, i), Digest: hex.EncodeToString(sum[:])}
		jobs = append(jobs, job)
		s.Files = append(s.Files, harness.File{Name: job.Input, Content: token})
		fmt.Fprintf(&queue, "%t, %s, %dms, %s, %s\n", image.reference != none, image.reference, random.IntN(300), stray, job.Input)
	}
	queue.WriteString(")")
	s.Queue = queue.String()
	s.Commands = strings.Join([]string{
		"executable = " + harness.ProbeName,
		`arguments = "account=$(Cluster).$(Process):$(input) $(stray) sleep=$(pause) end -- $(Cluster).$(Process)"`,
		"should_transfer_files = YES",
		"when_to_transfer_output = ON_EXIT",
		"transfer_input_files = $(input)",
		"output = out.$(Process)",
		"error = err.$(Process)",
		"request_memory = 32",
		"request_disk = 1024",
		"on_exit_remove = ExitBySignal =!= true",
		"+WantContainer = $(contained)",
		`+ContainerImage = "docker://$(image)"`,
	}, "\n")
	return s, jobs
}

// during runs while, and kills and watches until it has ended.
func (c *chaos) during(ctx context.Context, t *testing.T, while func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 2)
	go func() { done <- c.harass(ctx) }()
	go func() { c.watch(ctx); done <- c.missing }()
	err := while(ctx)
	stop()
	for range 2 {
		if stopped := <-done; stopped != nil {
			t.Error(stopped)
		}
	}
	if err != nil {
		t.Error(err) // the checker says what is missing
	}
}

// waitAll waits until all jobs have left the queue or are held.
func waitAll(ctx context.Context, jobs []harness.Job) ([]harness.Event, error) {
	var events []harness.Event
	err := harness.WaitFile(ctx, jobs[0].Log, func(text []byte) (bool, error) {
		var err error
		if events, err = harness.ParseEvents(string(text)); err != nil {
			return false, err
		}
		ended := map[int]bool{}
		for _, event := range events {
			if _, ok := harness.EndingOf(event); ok {
				ended[event.Proc] = true
			}
		}
		return len(ended) == len(jobs), nil
	})
	return events, err
}

// gather collects all evidence when all jobs have ended.
func gather(ctx context.Context, t *testing.T, pool *harness.Pool, c *chaos, marks harness.LogMarks, submitted []harness.Job, e *Evidence) {
	t.Helper()
	var err error
	e.Left = leftovers(ctx, pool, c.users)
	// The startd logs the end of the last starter a moment after it.
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = harness.Poll(wait, "the startd to see all starters end", func() (bool, error) {
		e.Activations, e.Ahead, err = activations(pool, marks)
		return err == nil && !slices.ContainsFunc(e.Activations, func(a Activation) bool { return a.Exit == "" }), err
	})
	if err != nil {
		t.Error(err)
	}
	if e.History, err = finals(wait, submitted); err != nil {
		t.Error(err)
	}
	e.Accounts = map[string]Account{}
	for _, job := range submitted {
		a, ok, err := account(job.Dir, job.Proc)
		if err != nil {
			t.Error(err)
		}
		if ok {
			e.Accounts[job.ID()] = a
		}
	}
	e.Kills, e.Noted = c.kills, c.noted
	for _, s := range c.spans {
		e.Sightings = append(e.Sightings, *s)
	}
}

// tell logs a summary.
func tell(t *testing.T, e Evidence, took time.Duration) {
	t.Helper()
	kills, ends, numbers := map[string]int{}, map[string]int{}, map[int]int{}
	for _, k := range e.Kills {
		kills[k.Kind]++
	}
	for _, a := range e.Activations {
		ends[a.Exit]++
	}
	for _, event := range e.Events {
		numbers[event.Number]++
	}
	t.Logf("%d jobs in %s, %.2f a second; kills: %v; %d activations, ends: %v; %d processes of payloads seen",
		len(e.Jobs), took.Round(100*time.Millisecond), float64(len(e.Jobs))/took.Seconds(), kills, len(e.Activations), ends, len(e.Sightings))
	bound, fresh := 0, 0
	for _, a := range e.Activations {
		if !a.Started.IsZero() {
			bound++
		}
		if a.Fresh {
			fresh++
		}
	}
	t.Logf("of %d jobs that started, %d had a container that was made ahead; %d were made ahead; images fetched: %d", bound, fresh, len(e.Ahead), e.Fetches)
	codes, together := map[int]int{}, 0
	for i, p := range e.Patches {
		codes[p.Code]++
		if slices.ContainsFunc(e.Patches[:i], func(o Patch) bool { return (interval{p.Began, p.Ended}).overlaps(interval{o.Began, o.Ended}) }) {
			together++
		}
	}
	t.Logf("patches of the pod: %d, of which %d while another was being carried out, answers: %v", len(e.Patches), together, codes)
	t.Logf("events: %d executed, %d evicted, %d shadow exceptions, %d disconnected, %d reconnects failed, %d terminated",
		numbers[harness.EventExecute], numbers[harness.EventEvicted], numbers[harness.EventShadowException],
		numbers[harness.EventDisconnected], numbers[harness.EventReconnectFailed], numbers[harness.EventTerminated])
}
