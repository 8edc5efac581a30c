//go:build pool

package spares

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// patience is how long everything may take. It is long, since a test that passes never
// uses it up.
const patience = 5 * time.Minute

var pool *harness.Pool

func TestMain(m *testing.M) {
	os.Exit(func() int {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var err error
		if pool, err = harness.Open(ctx); err == nil && pool.Spares == 0 {
			err = fmt.Errorf("the pool has no spares; bring it up with --slots 2 --spares 2")
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// fresh is a job that fails if an earlier one has left anything in its container. Shared
// memory is the pod's, so there it looks for its own user's.
const fresh = `#!/bin/sh
for dir in /tmp /var/tmp; do
	[ -w "$dir" ] || continue
	[ -z "$(ls -A "$dir")" ] || { ls -lA "$dir"; exit 3; }
	echo "$1" >"$dir/trace" || exit 4
done
[ ! -e /dev/shm/trace.$(id -u) ] || exit 5
echo "$1" >/dev/shm/trace.$(id -u) || exit 6
sleep "$2"
`

// burst submits so many jobs in an image that take so many seconds, and waits until all
// have ended well.
func burst(t *testing.T, jobs, seconds int, image string) {
	t.Helper()
	submitted, err := pool.Submit(t.Context(), harness.Submission{Name: "burst", Side: harness.Ours, Count: jobs,
		Files: []harness.File{{Name: "fresh", Mode: 0o755, Content: []byte(fresh)}},
		Commands: "universe = docker\ndocker_image = " + image + "\nexecutable = fresh\nshould_transfer_files = YES\n" +
			fmt.Sprintf("arguments = \"$(ProcId) %d\"\n", seconds) +
			"output = out.$(ProcId)\nerror = err.$(ProcId)\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, _ = pool.AP(ctx, "condor_rm", "-forcex", fmt.Sprint(submitted[0].Cluster))
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, job := range submitted {
		ending, err := job.WaitEnding(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := ending.String(); got != "exit code 0" {
			events, _ := job.Events()
			t.Errorf("job %s ended with %s\n%s", job.ID(), got, harness.Headlines(events))
		}
	}
}

// ready counts the runs since the marks, and those of them that found their container ready.
func ready(t *testing.T, marks harness.LogMarks) (all, found int) {
	t.Helper()
	runs, err := pool.RunsSince(harness.Ours, marks)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		if run.Job == "" {
			continue
		}
		all++
		if strings.Contains(run.Text(), " already\n") {
			found++
		}
	}
	return all, found
}

func marksNow(t *testing.T) harness.LogMarks {
	t.Helper()
	marks, err := pool.MarkLogs(harness.Ours)
	if err != nil {
		t.Fatal(err)
	}
	return marks
}

// TestBurst: jobs that follow each other in one image find fresh containers, each of its
// own, and ask the API server for less than a patch each.
func TestBurst(t *testing.T) {
	image := pool.Image("busybox")
	burst(t, 2*pool.Slots, 3, image) // so that the image's digest is known, and the spares are made
	marks := marksNow(t)
	log, err := pool.APILog()
	if err != nil {
		t.Fatal(err)
	}
	const jobs = 12
	burst(t, jobs, 5, image)
	all, found := ready(t, marks)
	if all != jobs || found < jobs-pool.Slots {
		t.Errorf("%d runs, %d of which found their container ready", all, found)
	}
	calls, err := log.Calls()
	if err != nil {
		t.Fatal(err)
	}
	patches := 0
	for _, call := range calls {
		if call.Verb == "patch" {
			patches++
		}
	}
	t.Logf("%d of %d jobs found their container ready; %d patches", found, all, patches)
	if patches > jobs {
		t.Errorf("%d patches for %d jobs", patches, jobs)
	}
}

// TestAnotherImage: spares get the image of the jobs that come now.
func TestAnotherImage(t *testing.T) {
	burst(t, 2*pool.Slots, 3, pool.Image("busybox"))
	burst(t, 3*pool.Slots, 3, pool.Image("debian"))
	marks := marksNow(t)
	const jobs = 8
	burst(t, jobs, 5, pool.Image("debian"))
	if all, found := ready(t, marks); all != jobs || found < jobs-pool.Slots {
		t.Errorf("%d runs, %d of which found their container ready", all, found)
	}
}

// killer kills the starter that has the lock (proc_locks(5)).
const killer = `inode=$(stat -c %i "$(condor_config_val POD_STARTER_PRIVATE_DIR)/restock.lock")
kill -9 $(awk '$2 == "FLOCK" && $6 ~ ":'$inode'$" {print $5}' /proc/locks)`

// TestStarterDiesWhileItMakesContainersAhead: its job runs again, and nobody gets a
// container of which nothing is known for certain.
func TestStarterDiesWhileItMakesContainersAhead(t *testing.T) {
	image := pool.Image("busybox")
	burst(t, 2*pool.Slots, 1, image)
	marks := marksNow(t)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-time.After(700 * time.Millisecond):
				_, _ = pool.EP(context.Background(), harness.Ours, "sh", "-c", killer)
			case <-stop:
				return
			}
		}
	}()
	burst(t, 8, 2, image)
	close(stop)
	<-done
	exits, err := pool.ExitsSince(harness.Ours, marks)
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, how := range exits {
		if how == "signal 9" {
			killed++
		}
	}
	if killed == 0 {
		t.Errorf("no starter was killed: %v", exits)
	}
	t.Logf("%d starters killed", killed)
}
