//go:build pool

package pulls

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/podfailures"
)

// patience is how long everything may take. It is long, since a test that passes never
// uses it up.
const patience = 5 * time.Minute

var (
	pool     *harness.Pool
	registry *podfailures.Registry
	probe    harness.File
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var err error
		if pool, err = harness.Open(ctx); err == nil {
			registry, err = podfailures.NewRegistry("127.0.0.1", false)
		}
		if err == nil {
			probe, err = pool.Probe(ctx)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer registry.Close()
		return m.Run()
	}())
}

// configure sets knobs of the starter until the test ends.
func configure(t *testing.T, lines string) {
	t.Helper()
	const file = "/etc/condor/config.d/99-z-pulls.conf"
	if _, err := pool.EPInput(t.Context(), harness.Ours, strings.NewReader(lines+"\n"), "sh", "-c", `cat > "$1"`, "configure", file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.EP(context.Background(), harness.Ours, "rm", "-f", file); err != nil {
			t.Error(err)
		}
	})
}

// submit submits a job in an image.
func submit(t *testing.T, name, image string) harness.Job {
	t.Helper()
	job, err := pool.SubmitOne(t.Context(), harness.Submission{Name: name, Side: harness.Ours, Files: []harness.File{probe},
		Commands: "universe = docker\ndocker_image = " + image + "\nexecutable = " + harness.ProbeName + "\narguments = \"exit=0\"\nshould_transfer_files = YES\n" +
			"output = out\nerror = err\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, _ = pool.AP(ctx, "condor_rm", "-forcex", job.ID())
	})
	return job
}

func wait(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// mustRun waits for the job's end.
func mustRun(t *testing.T, job harness.Job) {
	t.Helper()
	ending, err := job.WaitEnding(wait(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := ending.String(); got != "exit code 0" {
		events, _ := job.Events()
		t.Fatalf("job %s ended with %s\n%s", job.ID(), got, harness.Headlines(events))
	}
}

// hold submits a job whose image hangs, and waits until the registry was asked for it.
func hold(t *testing.T, name string) harness.Job {
	t.Helper()
	t.Cleanup(func() { registry.Release(name) })
	job := submit(t, name, registry.Image("hold", name))
	ctx := wait(t)
	if err := harness.Poll(ctx, "a pull of the image of job "+job.ID(), func() (bool, error) { return registry.Asked(name), nil }); err != nil {
		t.Fatal(err)
	}
	return job
}

// hasBegun says whether the job has been executing.
func hasBegun(t *testing.T, job harness.Job) bool {
	t.Helper()
	events, err := job.Events()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(harness.Headlines(events), "001 ")
}

// TestNeighbourDoesNotWait: while one slot's image hangs, jobs in an image on the node run
// on the other, one after another.
func TestNeighbourDoesNotWait(t *testing.T) {
	mustRun(t, submit(t, "before", registry.Image("good", "neighbour")))
	held := hold(t, "hangs")
	for i := range 3 {
		mustRun(t, submit(t, fmt.Sprint("neighbour-", i), registry.Image("good", "neighbour")))
	}
	if hasBegun(t, held) {
		t.Error("the job whose image hangs has begun")
	}
	registry.Release("hangs")
	mustRun(t, held)
}

// TestWithoutPullers: a job whose neighbour's image hangs waits, says for what, does not
// run into its own time limit, and runs when the kubelet comes to it.
func TestWithoutPullers(t *testing.T) {
	configure(t, "POD_STARTER_PULLERS =")
	mustRun(t, submit(t, "before", registry.Image("good", "patient")))
	held := hold(t, "blocks")
	configure(t, "POD_STARTER_PULLERS =\nPOD_STARTER_BIND_TIMEOUT = 10")
	marks, err := pool.MarkLogs(harness.Ours)
	if err != nil {
		t.Fatal(err)
	}
	behind := submit(t, "behind", registry.Image("good", "patient"))
	said(t, marks, behind, "busy with container payload")
	// Longer than its limit: the second such line comes after twice the time.
	said(t, marks, behind, "for 2")
	if hasBegun(t, behind) {
		t.Error("the kubelet has come to the second job; does it pull in the background now?")
	}
	registry.Release("blocks")
	mustRun(t, held)
	mustRun(t, behind)
}

// said waits for a line in the log of the job's starter.
func said(t *testing.T, marks harness.LogMarks, job harness.Job, text string) {
	t.Helper()
	err := harness.Poll(wait(t), fmt.Sprintf("%q in the starter's log of job %s", text, job.ID()), func() (bool, error) {
		runs, err := pool.RunsSince(harness.Ours, marks)
		if err != nil {
			return false, err
		}
		for _, run := range runs {
			if (run.Job == "" || run.Job == job.ID()) && run.Has(text) { // the log names the job when it starts
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFailedPullTouchesNoPayload: the job is held with the registry's words, and no
// payload container is made anew.
func TestFailedPullTouchesNoPayload(t *testing.T) {
	before := payloads(t)
	job := submit(t, "missing", registry.Image("missing", "nothing"))
	ending, err := job.WaitEnding(wait(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := ending.String(); !strings.HasPrefix(got, "held 35/") || !strings.Contains(got, "not found") {
		t.Errorf("job %s ended with %s", job.ID(), got)
	}
	if after := payloads(t); after != before {
		t.Errorf("payload containers before: %s, after: %s", before, after)
	}
}

// payloads are the nonces of the payload containers, which each binding changes.
func payloads(t *testing.T) string {
	t.Helper()
	out, err := pool.Kubectl(t.Context(), nil, "get", "pod", "glidein", "-o", "jsonpath={.metadata.annotations}")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPullersTaken: with one puller, the second image waits for the first, and says so.
func TestPullersTaken(t *testing.T) {
	first := hold(t, "taken")
	marks, err := pool.MarkLogs(harness.Ours)
	if err != nil {
		t.Fatal(err)
	}
	second := submit(t, "second", registry.Image("good", "second"))
	said(t, marks, second, "glidein-puller fetches "+registry.Image("hold", "taken"))
	if hasBegun(t, second) {
		t.Error("the second job has begun, with one puller")
	}
	registry.Release("taken")
	mustRun(t, first)
	mustRun(t, second)
}

// TestRemovedWhilePulling: the pull of a job that was removed goes on in the puller. The
// next image waits until the kubelet is done with it.
func TestRemovedWhilePulling(t *testing.T) {
	next := behindRemoved(t, "removed")
	registry.Release("removed")
	mustRun(t, next)
}

// behindRemoved is a job that waits for a puller, whose pull hangs although the job for which it
// was has been removed.
func behindRemoved(t *testing.T, name string) harness.Job {
	t.Helper()
	first := hold(t, name)
	if _, err := pool.AP(t.Context(), "condor_rm", first.ID()); err != nil {
		t.Fatal(err)
	}
	if _, err := first.WaitEnding(wait(t)); err != nil {
		t.Fatal(err)
	}
	marks, err := pool.MarkLogs(harness.Ours)
	if err != nil {
		t.Fatal(err)
	}
	next := submit(t, "next", registry.Image("good", "after-"+name))
	said(t, marks, next, "for a puller to fetch")
	return next
}

// TestWithoutUsablePuller: when the puller is gone, payload containers pull for themselves.
func TestWithoutUsablePuller(t *testing.T) {
	configure(t, "POD_STARTER_PULLERS = no-such-pod")
	marks, err := pool.MarkLogs(harness.Ours)
	if err != nil {
		t.Fatal(err)
	}
	job := submit(t, "alone", registry.Image("good", "alone"))
	mustRun(t, job)
	said(t, marks, job, "pulls "+registry.Image("good", "alone")+" itself")
}
