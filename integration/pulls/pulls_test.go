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
