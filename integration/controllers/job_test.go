//go:build pool

package controllers

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// submit submits docker jobs for a site, and removes those that are left when the test ends.
func (s site) submit(ctx context.Context, t *testing.T, sub harness.Submission) []harness.Job {
	t.Helper()
	sub.Commands += "\nuniverse = docker\n"
	return s.submitPlain(ctx, t, sub)
}

// submitPlain does the same with jobs of any universe.
func (s site) submitPlain(ctx context.Context, t *testing.T, sub harness.Submission) []harness.Job {
	t.Helper()
	sub.Name, sub.Side = strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")+sub.Name), harness.Ours
	own := "TARGET." + attribute + " =?= " + strconv.Quote(s.mark(t))
	if sub.Requirements != "" {
		own += " && (" + sub.Requirements + ")"
	}
	sub.Requirements = own
	sub.Commands += "\nshould_transfer_files = YES\noutput = out.$(ProcId)\nerror = err.$(ProcId)\n" +
		"request_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n+" + attribute + " = " + strconv.Quote(s.mark(t)) + "\n"
	jobs, err := pool.Submit(ctx, sub)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, _ = pool.AP(ctx, "condor_rm", strconv.Itoa(jobs[0].Cluster)) // an error if none is left
	})
	return jobs
}

// often is how many events of a kind a job has.
func often(events []harness.Event, number int) int {
	n := 0
	for _, e := range events {
		if e.Number == number {
			n++
		}
	}
	return n
}

// ended waits for the end of a job, which must be a good one, after so many runs, and without anything that a user would ask about.
func ended(ctx context.Context, t *testing.T, job harness.Job, runs int) []harness.Event {
	t.Helper()
	ending, err := job.WaitEnding(ctx)
	if err != nil {
		t.Fatal(err)
	}
	events, err := job.Events()
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]int{
		harness.EventExecute: runs, harness.EventEvicted: runs - 1, harness.EventTerminated: 1,
		harness.EventHeld: 0, harness.EventShadowException: 0, harness.EventDisconnected: 0, harness.EventReconnectFailed: 0,
	}
	for number, n := range want {
		if got := often(events, number); got != n {
			t.Errorf("job %s has event %03d %d times, want %d", job.ID(), number, got, n)
		}
	}
	if ending.String() != "exit code 0" {
		t.Errorf("job %s ended with %s", job.ID(), ending)
	}
	if t.Failed() {
		t.Logf("job %s: %s", job.ID(), harness.Headlines(events))
	}
	return events
}

// finished waits for the end of a Job, which must be a good one.
func finished(ctx context.Context, t *testing.T, s site) {
	t.Helper()
	const conditions = `{range .status.conditions[?(@.status=="True")]}{.type}: {.reason} {end}`
	var last string
	err := harness.Poll(ctx, "the Job's end", func() (bool, error) {
		last = kubectl(ctx, t, "get", s.owner(), "-o", "jsonpath="+conditions)
		return strings.Contains(last, "Complete:") || strings.Contains(last, "Failed:"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(last, "Complete:") {
		t.Fatalf("the Job has ended with %s", last)
	}
}

// endsWhenIdle makes a pilot end when it has had no job for a while: longer than a busy pool takes to give it the first. The startd
// looks when it reports to the collector (condor_startd.V6/ResMgr.cpp:check_use), which is every five minutes by default.
const endsWhenIdle = "POD_STARTER_IDLE_TIME = 30\nUPDATE_INTERVAL = 5"

// defaultBackoffLimit is that of a Job that has none of its own (batch/v1 SetDefaults_Job).
const defaultBackoffLimit = 6

// TestJobEnds: a Job runs ten jobs in several images and completes when no more come. The payload container was made anew for them more
// often than a Job's failures are allowed by default. The Job and its pod go when their time is over.
func TestJobEnds(t *testing.T) {
	ctx := soon(t)
	s := site{source: "glidein-job", kind: "Job", config: []string{endsWhenIdle}}
	images := []string{"busybox", "debian", "probe"}
	const count = 10
	var queue strings.Builder
	for i := range count {
		fmt.Fprintln(&queue, pool.Image(images[i%len(images)]))
	}
	jobs := s.submit(ctx, t, harness.Submission{
		Files: []harness.File{probe}, Count: count, Queue: "queue docker_image from (\n" + queue.String() + ")",
		Commands: "executable = " + harness.ProbeName + "\narguments = \"cat=/image-name\"",
	})
	began := time.Now()
	s.apply(ctx, t)
	for i, job := range jobs {
		ended(ctx, t, job, 1)
		out, err := job.Output("out." + strconv.Itoa(i))
		if want := images[i%len(images)]; err != nil || strings.TrimSpace(out) != want {
			t.Errorf("job %s ran in image %q, want %s: %v", job.ID(), out, want, err)
		}
	}
	t.Logf("all jobs have ended after %v", time.Since(began).Round(100*time.Millisecond))
	finished(ctx, t, s)
	t.Logf("the Job is complete after %v", time.Since(began).Round(100*time.Millisecond))
	all := await(ctx, t, "a pod", func(all []pod) bool { return len(all) > 0 })
	if len(all) != 1 || all[0].Status.Phase != "Succeeded" {
		t.Fatalf("the pods of the Job are %+v, want one that has succeeded", all)
	}
	restarts := 0
	for _, c := range all[0].Status.InitContainerStatuses {
		restarts += c.RestartCount
	}
	if restarts <= defaultBackoffLimit {
		t.Errorf("payload containers were made anew %d times; a Job with the default backoffLimit would have endured that", restarts)
	}
	for _, c := range all[0].Status.ContainerStatuses {
		if c.RestartCount != 0 {
			t.Errorf("the container %s was started again %d times", c.Name, c.RestartCount)
		}
		if end := c.State.Terminated; end.ExitCode != 0 || !strings.Contains(end.Message, "idle for too long") {
			t.Errorf("the container %s ended with %d and says %q", c.Name, end.ExitCode, end.Message)
		}
	}
	// It had an hour.
	kubectl(ctx, t, "patch", s.owner(), "--type=merge", `-p={"spec":{"ttlSecondsAfterFinished":1}}`)
	kubectl(ctx, t, "wait", "--for=delete", s.owner(), "--timeout=60s")
	await(ctx, t, "the end of the Job's pod", func(all []pod) bool { return len(all) == 0 })
}

// TestJobDrained: the pod of a Job is drained under a running job. The Job controller counts a failure and makes another pod, in which the
// job runs to its end; then the Job is complete. The pilot that was told to stop has not done its work, and its pod has failed.
func TestJobDrained(t *testing.T) {
	ctx := soon(t)
	s := site{source: "glidein-job", kind: "Job", config: []string{endsWhenIdle}}
	jobs := diaries(ctx, t, s, 1)
	before := await(ctx, t, "the pod", func(all []pod) bool { return len(all) == 1 })
	node := before[0].Spec.NodeName
	uncordonLater(t, node)
	if _, err := pool.Kubectl(ctx, nil, "drain", node, "--delete-emptydir-data", "--pod-selector=job-name", "--timeout=3m"); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Kubectl(ctx, nil, "uncordon", node); err != nil {
		t.Fatal(err)
	}
	ranAgain(ctx, t, jobs, byDrain)
	finished(ctx, t, s)
	if got := kubectl(ctx, t, "get", s.owner(), "-o", "jsonpath={.status.failed} {.status.succeeded}"); got != "1 1" {
		t.Errorf("pods that failed and succeeded: %s, want 1 1", got)
	}
}
