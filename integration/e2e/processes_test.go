//go:build pool

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// gone is how soon every process of a job must be gone.
const gone = 5 * time.Second

// TestRemoveLeavesNoProcess: a job ends when it is asked to, but its other processes
// have left its session and their parents, ignore every polite signal, or keep
// replacing themselves.
func TestRemoveLeavesNoProcess(t *testing.T) {
	job := submit(t, job("detach=5 hydra=1 ready forever"))[0]
	running(t, job, 1)
	ready(t)
	before, err := harness.Processes(payload())
	if err != nil {
		t.Fatal(err)
	}
	// The probe and the detached; those that keep changing may be between two lives.
	if len(before) < 1+5 {
		t.Fatalf("the job's processes are %v: the test shows nothing", before)
	}
	removed := time.Now()
	if err := job.Tool(t.Context(), "condor_rm"); err != nil {
		t.Fatal(err)
	}
	if err := harness.WaitNone(soon(t, gone), payload()); err != nil {
		t.Fatal(err)
	}
	t.Logf("no process left %v after condor_rm", time.Since(removed).Round(time.Millisecond))
	if end := ending(t, job); !end.Removed {
		t.Errorf("the job was removed, and its log says: %s", end)
	}
}

// TestNoProcessOutlivesItsJob: the job ends by itself and leaves processes.
func TestNoProcessOutlivesItsJob(t *testing.T) {
	job := submit(t, job("detach=3 hydra=1 exit=0"))[0]
	mustExit(t, job, 0)
	if err := harness.WaitNone(soon(t, gone), payload()); err != nil {
		t.Fatal(err)
	}
}

// TestKilledStarter: the starter is killed, or gets a signal that ends it, with a job's processes
// running. They end at once, the job runs again, and the next one is unharmed.
func TestKilledStarter(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGKILL, unix.SIGSEGV} {
		t.Run(sig.String(), func(t *testing.T) { killedStarter(t, sig) })
	}
}

func killedStarter(t *testing.T, sig unix.Signal) {
	jobs := submit(t, job("detach=2 ignore ready forever"))
	victim := jobs[0]
	running(t, victim, 1)
	ready(t)
	starters, err := harness.Processes(pool.Starters(side))
	if err != nil {
		t.Fatal(err)
	}
	if len(starters) != 1 {
		t.Fatalf("starters that run: %v, want one", starters)
	}
	next := submit(t, job("facts exit=3"))[0]
	first, err := harness.Processes(payload())
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 3 {
		t.Fatalf("the job's processes are %v, want the probe and two detached: the test shows nothing", first)
	}
	if err := harness.Kill(starters[0], sig); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	// Only those of the first run: the second may have begun by then.
	if err := harness.WaitNone(soon(t, gone), func(p harness.Process) bool {
		return payload()(p) && slices.ContainsFunc(first, func(f harness.Process) bool { return f.PID == p.PID })
	}); err != nil {
		t.Fatalf("the starter got %s: %v", sig, err)
	}
	t.Logf("no process of the first run left %v after the starter", time.Since(killed).Round(time.Millisecond))
	running(t, victim, 2)
	if err := victim.Tool(t.Context(), "condor_rm"); err != nil {
		t.Fatal(err)
	}
	if end := ending(t, victim); !end.Removed {
		t.Errorf("the job was removed in its second run, and its log says: %s", end)
	}
	mustExit(t, next, 3)
	seen, err := next.Facts("out")
	if err != nil {
		t.Fatal(err)
	}
	checkRights(t, seen)
}

// TestVacate: the soft kill reaches the job, which writes a last file; the file is
// kept, and there again when the job runs next.
func TestVacate(t *testing.T) {
	job := submit(t, job("resume=caught:0 trap=caught:3 ready forever",
		"when_to_transfer_output = ON_EXIT_OR_EVICT"))[0]
	running(t, job, 1)
	ready(t)
	if err := job.Tool(t.Context(), "condor_vacate_job"); err != nil {
		t.Fatal(err)
	}
	mustExit(t, job, 0)
	if got := output(t, job, "out"); got != "terminated\n" {
		t.Errorf("the second run found %q of what the first one noted when it was told to leave", got)
	}
	events, err := job.Events()
	if err != nil {
		t.Fatal(err)
	}
	if !has(events, harness.EventEvicted) || executions(events) != 2 {
		t.Errorf("the log has no eviction and second run: %s", harness.Headlines(events))
	}
}

// TestVacateFast does not ask the job.
func TestVacateFast(t *testing.T) {
	job := submit(t, job("trap=caught:3 ready forever", "when_to_transfer_output = ON_EXIT_OR_EVICT"))[0]
	running(t, job, 1)
	first := ready(t)
	if err := job.Tool(t.Context(), "condor_vacate_job", "-fast"); err != nil {
		t.Fatal(err)
	}
	if err := harness.WaitNone(soon(t, gone), func(p harness.Process) bool { return p.PID == first.PID }); err != nil {
		t.Fatal(err)
	}
	if _, err := job.WaitEvent(soon(t, patience), harness.EventEvicted, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(job.Dir, "caught")); err == nil {
		t.Error("the job was asked to end, although the vacate was a fast one")
	}
}

// TestHold: a job that ignores the soft kill gets the hard one when its time is
// over.
func TestHold(t *testing.T) {
	job := submit(t, job("ignore ready forever"))[0]
	running(t, job, 1)
	ready(t)
	if err := job.Tool(t.Context(), "condor_hold"); err != nil {
		t.Fatal(err)
	}
	if end := ending(t, job); !end.Held || end.Code != 1 || !strings.Contains(end.Reason, "condor_hold") {
		t.Errorf("the job was put on hold by its user, and its log says: %s", end)
	}
	// The kill comes after two seconds; the startd's own would come after 30.
	if err := harness.WaitNone(soon(t, 2*time.Second+gone), payload()); err != nil {
		t.Fatal(err)
	}
}

func has(events []harness.Event, number int) bool {
	return slices.ContainsFunc(events, func(e harness.Event) bool { return e.Number == number })
}
