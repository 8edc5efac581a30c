//go:build pool

package daemonfaults

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// TestScheddRestarts kills the schedd, and with it the shadows, under jobs that
// run: one continues until its new shadow has come, one ends before. Both report
// the exit of their only run.
func TestScheddRestarts(t *testing.T) {
	defer witness(t)()
	type pair struct{ stays, ends harness.Job }
	jobs := map[harness.Side]pair{}
	for _, side := range sides {
		jobs[side] = pair{submit(t, side, "stays", lasting), submit(t, side, "ends", lasting)}
	}
	for _, p := range jobs {
		running(t, p.stays)
		running(t, p.ends)
	}
	if _, err := pool.APRoot(t.Context(), nil, "condor_restart", "-fast", "-schedd"); err != nil {
		t.Fatal(err)
	}
	if err := harness.WaitNone(soon(t), submitSide("condor_shadow")); err != nil {
		t.Fatal(err)
	}
	for _, p := range jobs {
		finish(t, p.ends)
	}
	both(t, func(t *testing.T, side harness.Side) {
		event(t, jobs[side].stays, harness.EventReconnected, 1)
		finish(t, jobs[side].stays)
		for name, job := range map[string]harness.Job{"stays": jobs[side].stays, "ends": jobs[side].ends} {
			events := ended(t, job, 7)
			t.Logf("%s: %s", name, numbers(events))
			if count(events, harness.EventExecute) != 1 || count(events, harness.EventReconnected) != 1 {
				t.Errorf("%s: it ran more than once, or its shadow did not come back: %s", name, harness.Headlines(events))
			}
			if out, err := job.Output("caught"); err != nil || out == "" {
				t.Errorf("%s: its output did not come: %q, %v", name, out, err)
			}
		}
		nothingLeft(t, side)
	})
}

// TestShadowKilled kills the shadow of a job that runs. The schedd runs the job
// again under the same claim; for that the execution point ends the first run.
func TestShadowKilled(t *testing.T) {
	defer witness(t)()
	both(t, func(t *testing.T, side harness.Side) {
		job := submit(t, side, "shadow", lasting)
		first := running(t, job)
		kill(t, shadowOf(t, job), unix.SIGKILL)
		event(t, job, harness.EventExecute, 2)
		if err := harness.WaitNone(soon(t), func(p harness.Process) bool { return p.PID == first.PID && of(job)(p) }); err != nil {
			t.Fatalf("the first run goes on: %v", err)
		}
		finish(t, job)
		events := ended(t, job, 7)
		t.Log(numbers(events))
		if count(events, harness.EventExecute) != 2 {
			t.Errorf("want two runs: %s", harness.Headlines(events))
		}
		nothingLeft(t, side)
	})
}

// TestTransferBreaks breaks the connection on which the output of a job is sent.
// The output still arrives, from the job's only run.
func TestTransferBreaks(t *testing.T) {
	defer witness(t)()
	port, err := pool.SubmitPort()
	if err != nil {
		t.Fatal(err)
	}
	job := submit(t, harness.Ours, "breaks", "disk=big:300 "+lasting)
	first := running(t, job)
	starter := starterOf(t, job)
	kill(t, first, unix.SIGTERM)
	logged(t, job, "transferring output files", "transfer output files")
	n, err := harness.BreakOff(starter, port)
	if err != nil || n != 1 {
		t.Fatalf("%d connections broken, %v", n, err)
	}
	events := ended(t, job, 7)
	t.Log(numbers(events))
	if count(events, harness.EventExecute) != 1 {
		t.Errorf("the job ran again: %s", harness.Headlines(events))
	}
	if info, err := os.Stat(filepath.Join(job.Dir, "big")); err != nil || info.Size() != 300<<20 {
		t.Errorf("its output did not come whole: %v, %v", info, err)
	}
	run, err := job.Run(soon(t), 1)
	if err != nil || !run.Has("The file transfer broke, it is tried again") {
		t.Errorf("the starter does not say that the transfer broke: %v", err)
	}
}
