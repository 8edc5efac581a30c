//go:build pool

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
)

var (
	sideFlag   = flag.String("side", "ours", "execution point that the tests are pointed at: ours or stock")
	condorFlag = flag.String("condor", "", "version that HTCondor must have, such as 23.9; empty for any")
)

// What every test uses; set once, before the first.
var (
	pool  *harness.Pool
	probe harness.File
	side  harness.Side
)

// patience is how long a job may take from submission to its end when the pool is busy
// with others. It is long, since a test that passes never uses it up.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func prepare(ctx context.Context) error {
	side = harness.Side(*sideFlag)
	if side != harness.Ours && side != harness.Stock {
		return fmt.Errorf("-side=%s: want ours or stock", side)
	}
	var err error
	if pool, err = harness.Open(ctx); err != nil {
		return err
	}
	probe, err = pool.Probe(ctx)
	return err
}

func TestPoolHasTheVersionAskedFor(t *testing.T) {
	for _, where := range []func(context.Context, ...string) (string, error){
		pool.AP,
		func(ctx context.Context, argv ...string) (string, error) { return pool.EP(ctx, side, argv...) },
	} {
		out, err := where(t.Context(), "condor_version")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, "$CondorVersion: "+*condorFlag) {
			t.Errorf("the pool does not run HTCondor %s:\n%s", *condorFlag, out)
		}
	}
}

// oursOnly is for tests that the stock starter of the pool cannot pass: it has no
// container runtime.
func oursOnly(t *testing.T) {
	t.Helper()
	if side != harness.Ours {
		t.Skip("the stock starter of this pool runs no images")
	}
}

// submit submits jobs, and describes them when the test fails. When the test ends,
// those left in the queue are removed.
func submit(t *testing.T, s harness.Submission) []harness.Job {
	t.Helper()
	if s.Side == "" {
		s.Side = side
	}
	if s.Name == "" {
		s.Name = strings.ToLower(strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
	}
	jobs, err := pool.Submit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if t.Failed() {
			for _, job := range jobs[:min(len(jobs), 3)] {
				t.Log(job.Describe())
			}
		}
		// It fails when all of them have ended, as they should have.
		_, _ = pool.AP(ctx, "condor_rm", "-constraint", fmt.Sprintf("ClusterId == %d", jobs[0].Cluster))
	})
	return jobs
}

// job is a submission of the probe with these steps, in the new syntax of
// arguments, and more commands.
func job(steps string, commands ...string) harness.Submission {
	lines := append([]string{
		"executable = " + harness.ProbeName,
		`arguments = "` + steps + `"`,
		"should_transfer_files = YES",
		"output = out",
		"error = err",
		"request_cpus = 1",
		"request_memory = 64",
		"request_disk = 16M",
		"job_max_vacate_time = 2",
	}, commands...)
	return harness.Submission{Files: []harness.File{probe}, Commands: strings.Join(lines, "\n")}
}

// configure adds lines to the configuration that starters of the side under test read
// when they start, until the test ends.
func configure(t *testing.T, lines ...string) {
	t.Helper()
	file := "/etc/condor/config.d/99-e2e.conf"
	if pool.Mode == harness.Rootless {
		// That directory has copies, which we may not write. This one is read before
		// the pilot's own.
		file = "/usr/share/condor/config.d/99-e2e.conf"
	}
	text := strings.NewReader(strings.Join(lines, "\n") + "\n")
	if _, err := pool.EPInput(t.Context(), side, text, "sh", "-c", `cat > "$1"`, "configure", file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.EP(context.Background(), side, "rm", "-f", file); err != nil {
			t.Error(err)
		}
	})
}

// soon is a context for something that should take no longer than d.
func soon(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// background is a context for functions that Cleanup calls: the test's own has ended
// then.
func background(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// ending waits for the end of a job.
func ending(t *testing.T, job harness.Job) harness.Ending {
	t.Helper()
	end, err := job.WaitEnding(soon(t, patience))
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// mustExit waits for the end of a job and requires an exit code.
func mustExit(t *testing.T, job harness.Job, code int) {
	t.Helper()
	if end := ending(t, job); !end.Exited || end.Code != code {
		t.Fatalf("job %s: %s, want exit code %d", job.ID(), end, code)
	}
}

// running waits until a job is executing.
func running(t *testing.T, job harness.Job, n int) {
	t.Helper()
	if _, err := job.WaitEvent(soon(t, patience), harness.EventExecute, n); err != nil {
		t.Fatal(err)
	}
}

// ready waits until the job that runs has reached its step "ready".
func ready(t *testing.T) harness.Process {
	t.Helper()
	found, err := harness.WaitSome(soon(t, patience), 1, pool.Ready(side))
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

// output reads a file of a job's submit directory.
func output(t *testing.T, job harness.Job, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(job.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// payload keeps the processes of jobs on the side under test.
func payload() func(harness.Process) bool { return pool.Payload(side) }

// leasedAs is the line of a starter's log that names the user of its container.
var leasedAs = regexp.MustCompile(`(?m)^leased payload container .*\buid=(\d+)`)

// userOf is the user that the first run of a job had, when that has ended. With spares the
// job may have had any container.
func userOf(t *testing.T, job harness.Job) int {
	t.Helper()
	if side.IsStock() || pool.Mode == harness.Rootless {
		return pool.PayloadUID(side)
	}
	run, err := job.Run(soon(t, patience), 1)
	if err != nil {
		t.Fatal(err)
	}
	m := leasedAs.FindStringSubmatch(run.Text())
	if m == nil {
		t.Fatalf("job %s: the starter's log does not name its user\n%s", job.ID(), run.Text())
	}
	uid, _ := strconv.Atoi(m[1])
	if !pool.IsPayloadUID(side, uid) {
		t.Errorf("job %s ran as user %d, which no payload container has", job.ID(), uid)
	}
	return uid
}
