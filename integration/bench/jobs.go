package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// patience is how long one job may take, and patienceOfRow a series.
const (
	patience      = 2 * time.Minute
	patienceOfRow = 20 * time.Minute
)

// bencher runs things on a pool.
type bencher struct {
	pool  *harness.Pool
	probe harness.File
}

func newBencher(ctx context.Context, pool *harness.Pool) (*bencher, error) {
	if !pool.HasStock() {
		return nil, errors.New("this pool has no stock starter to compare with; start it with `up --stock`")
	}
	b := &bencher{pool: pool}
	var err error
	if b.probe, err = pool.Probe(ctx); err != nil {
		return nil, err
	}
	return b, b.installBinder(ctx)
}

// configFile is read by starters when they start.
const configFile = "/etc/condor/config.d/99-bench.conf"

// clean removes what the bench left in the pilot container.
func (b *bencher) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, _ = b.pool.EP(ctx, harness.Ours, "rm", "-f", configFile, binderPath)
}

// keeping runs something while containers are kept for the same image.
func (b *bencher) keeping(ctx context.Context, run func() (row, error)) (row, error) {
	const knobs = "POD_STARTER_RESET = image\nPOD_STARTER_DIGEST_LIFETIME = 86400\n"
	if _, err := b.pool.EPInput(ctx, harness.Ours, strings.NewReader(knobs), "sh", "-c", `cat > "$1"`, "configure", configFile); err != nil {
		return row{}, err
	}
	r, err := run()
	_, failed := b.pool.EP(ctx, harness.Ours, "rm", "-f", configFile)
	return r, errors.Join(err, failed)
}

// warm runs jobs that are not measured: they claim the slots, pull the images and
// make their digests known.
func (b *bencher) warm(ctx context.Context) error {
	for _, image := range []string{imageA, imageB} {
		if _, err := b.runs(ctx, harness.Ours, "sleep=3s", []string{image}, 1); err != nil {
			return err
		}
	}
	_, err := b.runs(ctx, harness.Stock, "out=done", nil, 1)
	return err
}

// row is a series of jobs that followed each other without a pause.
type row struct {
	runs  []harness.Run // in the order in which they ran
	calls map[string]int
}

// row runs n jobs one after another, in these images of the pool in turns, and
// counts the API server's requests for them.
func (b *bencher) row(ctx context.Context, side harness.Side, images []string, n int) (row, error) {
	before, err := b.pool.APILog()
	if err != nil {
		return row{}, err
	}
	r := row{calls: map[string]int{}}
	if r.runs, err = b.runs(ctx, side, "out=done", images, n); err != nil {
		return row{}, err
	}
	slices.SortFunc(r.runs, func(a, b harness.Run) int { return a.Began.Compare(b.Began) })
	calls, err := before.Calls()
	for _, call := range calls {
		r.calls[call.Verb]++
	}
	return r, err
}

// between is the time from the end of one job's process to the start of the next,
// for all jobs except the first.
func (r row) between() (turns, error) {
	var all turns
	var ended time.Time
	var before string
	for _, run := range r.runs {
		image := imageOf(run)
		for _, line := range run.Lines {
			switch {
			case strings.HasPrefix(line.Text, "Create_Process succeeded") && !ended.IsZero():
				all.add(before, image, line.Time.Sub(ended))
			case strings.HasPrefix(line.Text, "Process exited"):
				ended, before = line.Time, image
			}
		}
	}
	if n := len(all.all()); n != len(r.runs)-1 {
		return turns{}, fmt.Errorf("%d jobs, but %d of them have a predecessor by their log", len(r.runs), n)
	}
	return all, nil
}

// imageOf is the image that a starter logged as bound; empty for a job without a
// container.
func imageOf(run harness.Run) string {
	for _, line := range run.Lines {
		if _, image, ok := strings.Cut(line.Text, "Payload container runs image "); ok {
			return strings.TrimSpace(image)
		}
	}
	return ""
}

// inTurns is a pick of each job except the first, by whether the job had the image
// of the one before.
func (r row) inTurns(pick func(harness.Run) time.Duration) turns {
	var all turns
	for i, run := range r.runs {
		if i > 0 {
			all.add(imageOf(r.runs[i-1]), imageOf(run), pick(run))
		}
	}
	return all
}

// of picks a duration from each run.
func (r row) of(pick func(harness.Run) time.Duration) []time.Duration {
	var all []time.Duration
	for _, run := range r.runs {
		all = append(all, pick(run))
	}
	return all
}

func lifetime(r harness.Run) time.Duration { return r.Ended.Sub(r.Began) }

func bind(r harness.Run) time.Duration { return r.Phases[harness.PhaseBind] }

func withoutBind(r harness.Run) time.Duration { return lifetime(r) - bind(r) }

// task is what one job does.
type task struct {
	steps string // of the probe
	image string // of the pool; empty for a job without one
}

// tasksOf are n equal tasks, in these images of the pool in turns.
func tasksOf(steps string, images []string, n int) []task {
	tasks := make([]task, n)
	for i := range tasks {
		tasks[i].steps = steps
		if len(images) > 0 {
			tasks[i].image = images[i%len(images)]
		}
	}
	return tasks
}

// runs submits jobs to one side and waits for their starters' logs.
func (b *bencher) runs(ctx context.Context, side harness.Side, steps string, images []string, n int) ([]harness.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, patienceOfRow)
	defer cancel()
	jobs, err := b.submit(ctx, side, tasksOf(steps, images, n))
	if err != nil {
		return nil, err
	}
	var done []harness.Run
	for _, job := range jobs {
		run, err := finish(ctx, job)
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, job.Describe())
		}
		done = append(done, run)
	}
	return done, nil
}

// submit makes one cluster of jobs. Either all of them have an image or none.
func (b *bencher) submit(ctx context.Context, side harness.Side, tasks []task) ([]harness.Job, error) {
	s := harness.Submission{
		Name: "bench", Side: side, Count: len(tasks),
		Commands: "executable = " + harness.ProbeName + "\narguments = \"$(steps)\"\nshould_transfer_files = YES\n" +
			"transfer_input_files = input.txt\noutput = out.$(Process)\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n",
		Files: []harness.File{b.probe, {Name: "input.txt", Content: []byte("a small input file\n")}},
	}
	var queue strings.Builder
	for _, t := range tasks {
		queue.WriteString(t.steps)
		if t.image != "" {
			queue.WriteString(", " + b.pool.Image(t.image))
		}
		queue.WriteByte('\n')
	}
	variables := "steps"
	if len(tasks) > 0 && tasks[0].image != "" {
		s.Commands += "universe = docker\ndocker_image = $(image)\n"
		variables = "steps, image"
	}
	s.Queue = "queue " + variables + " from (\n" + queue.String() + ")"
	return b.pool.Submit(ctx, s)
}

func finish(ctx context.Context, job harness.Job) (harness.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	end, err := job.WaitEnding(ctx)
	if err != nil {
		return harness.Run{}, err
	}
	if !end.Exited || end.Code != 0 {
		return harness.Run{}, fmt.Errorf("job %s: %s", job.ID(), end)
	}
	return job.Run(ctx, 1)
}
