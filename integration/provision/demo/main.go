// Command demo shows the provisioner at work on the pool of this machine: jobs of three sizes wait, pods come for them and go again. It prints what
// is there whenever that changes, and draws it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/provision"
)

// patience is how long the demonstration may take.
const patience = 15 * time.Minute

const config = `interval: 10s
limits: {pods: 6, coming: 4}
policy: {settle: 1m}
`

const shapes = `shapes:
- {name: small, cpus: 1, memory: 160Mi, disk: 64Mi}
- {name: wide, cpus: 2, memory: 160Mi, disk: 64Mi}
- {name: deep, cpus: 1, memory: 384Mi, disk: 64Mi}
`

// A wave is jobs that are submitted together.
type wave struct {
	name, commands string
	jobs           int
}

var waves = []wave{
	{"small", "docker_image = $(IMAGE_busybox)\nrequest_cpus = 1\nrequest_memory = 64\n", 12},
	{"wide", "docker_image = $(IMAGE_debian)\nrequest_cpus = 2\nrequest_memory = 64\n", 6},
	{"deep", "docker_image = $(IMAGE_probe)\nrequest_cpus = 1\nrequest_memory = 256\n", 6},
}

func main() {
	picture := flag.String("picture", "", "the `file` for the picture; without it, provisioner.svg among the pool's own files")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := demonstrate(ctx, *picture); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func demonstrate(ctx context.Context, picture string) (err error) {
	pool, err := harness.Open(ctx)
	if err != nil {
		return err
	}
	if picture == "" {
		picture = filepath.Join(pool.State, "provisioner.svg")
	}
	if err := provision.Clean(ctx, pool); err != nil {
		return err
	}
	probe, err := pool.Probe(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "podstarter-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	site := &provision.Site{
		Pool: pool, Mark: fmt.Sprintf("demo-%d", os.Getpid()), Config: config,
		Templates: []provision.Template{{Name: "glidein", Text: shapes}},
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
		defer cancel()
		err = errors.Join(err, site.Remove(ctx))
	}()
	if err := site.Apply(ctx, dir); err != nil {
		return err
	}
	show, err := newShow(ctx, site, os.Stdout)
	if err != nil {
		return err
	}
	for _, w := range waves {
		jobs, err := pool.Submit(ctx, harness.Submission{
			Name: "demo-" + w.name, Side: harness.Ours, Files: []harness.File{probe}, Requirements: site.Requirements(), Count: w.jobs,
			Commands: "universe = docker\nexecutable = " + harness.ProbeName + "\narguments = \"sleep=5s\"\nshould_transfer_files = YES\n" +
				"output = out.$(ProcId)\nrequest_disk = 16M\n" + site.Commands() + w.commands,
		})
		if err != nil {
			return err
		}
		show.jobs = append(show.jobs, jobs...)
	}
	if err := show.run(ctx); err != nil {
		return err
	}
	if err := show.draw(picture); err != nil {
		return err
	}
	fmt.Printf("%d jobs in %d pods, in %s. The picture: %s\n", len(show.jobs), len(show.diary.Jobs()), show.last().at.Round(time.Second), picture)
	return nil
}

// A show prints and keeps what is there.
type show struct {
	site    *provision.Site
	diary   *provision.Diary
	jobs    []harness.Job
	out     io.Writer
	began   time.Time
	samples []sample
}

// A sample is what is there at a moment.
type sample struct {
	at                  time.Duration
	idle, running, done int // jobs
	coming, pods, gone  int // pods: on their way, running, ended
}

func newShow(ctx context.Context, site *provision.Site, out io.Writer) (*show, error) {
	diary, err := provision.Follow(ctx, site.Pool)
	if err != nil {
		return nil, err
	}
	s := &show{site: site, diary: diary, began: time.Now(), out: out}
	return s, s.line("TIME", "JOBS IDLE", "RUNNING", "DONE", "PODS COMING", "RUNNING", "ENDED", "WHAT WAS DECIDED")
}

// line prints a line of the table.
func (s *show) line(columns ...any) error {
	_, err := fmt.Fprintf(s.out, "%-7v %9v %7v %4v   %11v %7v %5v   %v\n", columns...)
	return err
}

func (s *show) last() sample {
	if len(s.samples) == 0 {
		return sample{}
	}
	return s.samples[len(s.samples)-1]
}

// run prints a line for each round of the provisioner, until all jobs are done and all pods have ended. It notes what is there each second.
func (s *show) run(ctx context.Context) error {
	before, err := s.site.State(ctx)
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now, err := s.look()
		if err != nil {
			return err
		}
		s.samples = append(s.samples, now)
		state, err := s.site.State(ctx)
		if err != nil {
			return err
		}
		if state.Rounds > before.Rounds {
			err := s.line(now.at.Round(time.Second), now.idle, now.running, now.done, now.coming, now.pods, now.gone, decided(before, state))
			if err != nil {
				return err
			}
			before = state
		}
		if now.done == len(s.jobs) && now.coming+now.pods == 0 {
			return nil
		}
	}
}

// decided is what was done between two states, in words.
func decided(before, now provision.State) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{now.Made - before.Made, "make %d"}, {now.Withdrawn - before.Withdrawn, "withdraw %d"}, {now.Waiting, "no place yet for %d jobs"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf(p.what, p.n))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// look counts.
func (s *show) look() (sample, error) {
	now := sample{at: time.Since(s.began)}
	for _, job := range s.jobs {
		events, err := job.Events()
		if err != nil {
			return now, err
		}
		running := false
		ended := false
		for _, e := range events {
			switch e.Number {
			case harness.EventExecute:
				running = true
			case harness.EventEvicted, harness.EventShadowException:
				running = false
			case harness.EventHeld, harness.EventAborted:
				return now, fmt.Errorf("job %s: %s", job.ID(), harness.Headlines(events))
			case harness.EventTerminated:
				ended = true
			}
		}
		switch {
		case ended:
			now.done++
		case running:
			now.running++
		default:
			now.idle++
		}
	}
	for _, j := range s.diary.Jobs() {
		switch {
		case j.Over():
			now.gone++
		case j.Runs():
			now.pods++
		default:
			now.coming++
		}
	}
	return now, nil
}
