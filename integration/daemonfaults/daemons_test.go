//go:build pool

package daemonfaults

import (
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// TestStartdKilled kills the startds under jobs. Their master starts them again,
// and the jobs run once more; nothing is left of the first run.
func TestStartdKilled(t *testing.T) { killedUnder(t, "condor_startd") }

// TestPilotKilled kills the first process of the pilot containers, condor_master,
// and with it all others. The kubelet starts them again.
func TestPilotKilled(t *testing.T) { killedUnder(t, "condor_master") }

func killedUnder(t *testing.T, comm string) {
	defer witness(t)()
	both(t, func(t *testing.T, side harness.Side) {
		// The shadow waits until its lease is over for an execution point that is
		// gone without a word.
		job := submit(t, side, comm, lasting, "+JobLeaseDuration = "+shortLease)
		first := running(t, job)
		kill(t, daemon(t, side, comm), unix.SIGKILL)
		if err := harness.WaitNone(soon(t), func(p harness.Process) bool { return p.PID == first.PID && of(job)(p) }); err != nil {
			t.Fatalf("the job outlives its %s: %v", comm, err)
		}
		event(t, job, harness.EventExecute, 2)
		finish(t, job)
		events := ended(t, job, 7)
		t.Log(numbers(events))
		nothingLeft(t, side)
	})
}
