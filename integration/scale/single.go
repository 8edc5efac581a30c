package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// single are the requests that jobs in a real pool cause, with a real kubelet, one job after the other.
type single struct {
	Jobs [][]count
}

// count is how many requests of a kind there were.
type count struct {
	Who, Verb, Resource string
	N                   int
}

const (
	// singles is how many jobs run: enough for the kubelet's filter of events to act.
	singles = 16
	// singleTime is how long each runs: longer than the kubelet needs to come to rest.
	singleTime = 5 * time.Second
)

// measureSingles runs jobs in the pool and counts the requests from the start of each to that of the next.
func measureSingles(ctx context.Context) (*single, error) {
	pool, err := harness.Open(ctx)
	if err != nil {
		return nil, err
	}
	probe, err := pool.Probe(ctx)
	if err != nil {
		return nil, err
	}
	marks := []time.Time{time.Now()}
	for i := range singles {
		if err := runSingle(ctx, pool, probe, []string{"busybox", "probe"}[i%2]); err != nil {
			return nil, err
		}
		marks = append(marks, time.Now())
	}
	s := new(single)
	for i := range singles {
		of, err := readAuditFile(filepath.Join(pool.State, "log", "audit.log"), marks[i], marks[i+1])
		if err != nil {
			return nil, err
		}
		var counts []count
		for _, kind := range kinds(of) {
			counts = append(counts, count{kind.who, kind.verb, kind.resource, of[kind].n})
		}
		s.Jobs = append(s.Jobs, counts)
	}
	if kubelets := s.of(0, singles)[request{kubelets, "patch", "pods/status"}]; kubelets == nil {
		return nil, fmt.Errorf("the audit log of the pool in %s has no requests of its kubelet; start the pool with `up --audit`", pool.State)
	}
	return s, nil
}

func runSingle(ctx context.Context, pool *harness.Pool, probe harness.File, image string) error {
	job, err := pool.SubmitOne(ctx, harness.Submission{
		Name: "scale", Side: harness.Ours, Files: []harness.File{probe},
		Commands: fmt.Sprintf("executable = %s\narguments = \"sleep=%s\"\nshould_transfer_files = YES\nuniverse = docker\n"+
			"docker_image = %s\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n", harness.ProbeName, singleTime, pool.Image(image)),
	})
	if err != nil {
		return err
	}
	end, err := job.WaitEnding(ctx)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, job.Describe())
	}
	if !end.Exited || end.Code != 0 {
		return fmt.Errorf("job %s: %s\n%s", job.ID(), end, job.Describe())
	}
	return nil
}

// write keeps the counts in a file.
func (s *single) write(path string) error {
	text, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// readSingle reads what write has written.
func readSingle(path string) (*single, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := new(single)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(s.Jobs) < singles {
		return nil, fmt.Errorf("%s has %d jobs instead of %d", path, len(s.Jobs), singles)
	}
	return s, nil
}

// of adds up some of the jobs.
func (s *single) of(from, to int) map[request]*calls {
	all := map[request]*calls{}
	for _, job := range s.Jobs[from:to] {
		for _, c := range job {
			kind := request{c.Who, c.Verb, c.Resource}
			if all[kind] == nil {
				all[kind] = new(calls)
			}
			all[kind].n += c.N
		}
	}
	return all
}

// ofJobs reports whether a request is about a job, and not about a node or the cluster, which cost the same without jobs.
func (k request) ofJobs() bool {
	switch k.resource {
	case "pods", "pods/status", "events":
		return k.who == pilots || k.who == kubelets
	}
	return k.who == pilots
}

// table shows what jobs in the real pool caused.
func (s *single) table(b *strings.Builder) {
	const part = 5
	n := len(s.Jobs)
	header(b, "requests of a job in a pool with a real kubelet", "by", fmt.Sprintf("mean of the first %d jobs of a pod", part), fmt.Sprintf("mean of jobs %d to %d", n-part+1, n))
	first, last := s.of(0, part), s.of(n-part, n)
	mean := func(m map[request]*calls, kind request) string {
		if m[kind] == nil {
			return "0.0"
		}
		return fmt.Sprintf("%.1f", float64(m[kind].n)/part)
	}
	for _, kind := range kinds(s.of(0, n)) {
		if kind.ofJobs() {
			row(b, kind.verb+" "+kind.resource, kind.who, mean(first, kind), mean(last, kind))
		}
	}
	b.WriteString("\n")
}
