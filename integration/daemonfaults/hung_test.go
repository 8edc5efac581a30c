//go:build pool

package daemonfaults

import (
	"context"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// TestHungStarter stops starters, so that they no longer tell their startd that
// they are alive. When the time that they announced is over, the startd kills them,
// and the jobs run again; nothing is left of the first run.
func TestHungStarter(t *testing.T) {
	defer witness(t)()
	const config = "/etc/condor/config.d/99-faults-hung.conf"
	for _, side := range sides {
		// Starters read it when they begin, and announce this time.
		text := strings.NewReader("STARTER_NOT_RESPONDING_TIMEOUT = 15\nSTARTER_FIRST_CHILDALIVE_DELAY = 1\n")
		if _, err := pool.EPInput(t.Context(), side, text, "sh", "-c", `cat >"$0"`, config); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := pool.EP(context.Background(), side, "rm", "-f", config); err != nil {
				t.Error(err)
			}
		})
	}
	both(t, func(t *testing.T, side harness.Side) {
		job := submit(t, side, "hung", lasting, "+JobLeaseDuration = "+shortLease)
		first := running(t, job)
		starter := starterOf(t, job)
		// With the first update, the starter has told the startd at least once.
		event(t, job, harness.EventImageSize, 1)
		kill(t, starter, unix.SIGSTOP)
		t.Cleanup(func() { _ = harness.Kill(starter, unix.SIGCONT) })
		if err := harness.WaitNone(soon(t), func(p harness.Process) bool {
			return p.PID == starter.PID || p.PID == first.PID && of(job)(p)
		}); err != nil {
			t.Fatalf("the starter that hangs, or its job, is not ended: %v", err)
		}
		event(t, job, harness.EventExecute, 2)
		finish(t, job)
		events := ended(t, job, 7)
		t.Log(numbers(events))
		nothingLeft(t, side)
	})
}
