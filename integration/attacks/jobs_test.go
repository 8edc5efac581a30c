//go:build pool

package attacks

import (
	"context"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// submit submits a job with these steps of the probe, in the hostile image, to the
// pod. When the test ends, the job is removed from the queue.
func (w *target) submit(t *testing.T, name, steps string, commands ...string) harness.Job {
	t.Helper()
	return w.submitWhere(t, name, "true", steps, commands...)
}

func (w *target) submitWhere(t *testing.T, name, where, steps string, commands ...string) harness.Job {
	t.Helper()
	job, err := pool.SubmitOne(t.Context(), harness.Submission{
		Name: "attack-" + name, Side: w.side, Requirements: where, Files: []harness.File{probe, {Name: hostilePlugin, Link: probe.Link}},
		Commands: strings.Join(append([]string{
			"universe = docker",
			"docker_image = " + pool.Image("hostile"),
			"executable = " + harness.ProbeName,
			`arguments = "` + steps + `"`,
			"should_transfer_files = YES",
			"output = out",
			"error = err",
			"request_cpus = 1",
			"request_memory = 64",
			"request_disk = 16M",
			"job_max_vacate_time = 2",
			"+Attacks = True",
		}, commands...), "\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if t.Failed() {
			t.Log(job.Describe())
		}
		if err := remove(ctx, t, job); err != nil {
			t.Error(err) // it would be in the way of all settings to come
		}
	})
	return job
}

// remove removes a job from the queue, unless it has left by itself.
func remove(ctx context.Context, t *testing.T, job harness.Job) error {
	return harness.Poll(ctx, "job "+job.ID()+" to leave", func() (bool, error) {
		_, refused := pool.AP(ctx, "condor_rm", job.ID())
		if refused == nil {
			return true, nil
		}
		left, err := pool.AP(ctx, "condor_q", job.ID(), "-af", "JobStatus")
		if err == nil && strings.TrimSpace(left) == "" {
			return true, nil
		}
		t.Logf("job %s is still there, %q, %v: %v", job.ID(), left, err, refused)
		return false, nil
	})
}

// mustEnd waits for the end of a job, which may be a hold.
func (w *target) mustEnd(t *testing.T, job harness.Job) harness.Ending {
	t.Helper()
	end, err := job.WaitEnding(soon(t, patience))
	if err != nil {
		t.Fatal(err)
	}
	if !end.Held && (!end.Exited || end.Code != 0) {
		complaint, _ := job.Output("err")
		t.Fatalf("job %s: %s\n%s", job.ID(), end, complaint)
	}
	return end
}

// soon is a context for something that should take no longer than d.
func soon(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
