//go:build pool

package e2e

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// TestWho: condor_who in the pilot reads the starter's log and finds the job while
// it runs, and not afterwards.
func TestWho(t *testing.T) {
	job := submit(t, job("ready forever"))[0]
	running(t, job, 1)
	process := ready(t)
	// The startd learns the process number with the first update, which also brings
	// the shadow the first measurement.
	if _, err := job.WaitEvent(soon(t, patience), harness.EventImageSize, 1); err != nil {
		t.Fatal(err)
	}
	out, err := pool.EP(t.Context(), side, "condor_who", "-wide")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^alice@.*\s` + regexp.QuoteMeta(job.ID()) + `\s+\d\+\d\d:\d\d:\d\d\s+(\d+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("condor_who does not tell of job %s and its process:\n%s", job.ID(), out)
	}
	if m[1] != strconv.Itoa(process.Inner) {
		t.Errorf("condor_who says that the job is process %s, it is %d", m[1], process.Inner)
	}
	if err := job.Tool(t.Context(), "condor_rm"); err != nil {
		t.Fatal(err)
	}
	if end := ending(t, job); !end.Removed {
		t.Fatal(end)
	}
	if _, err := job.Run(soon(t, patience), 1); err != nil {
		t.Fatal(err)
	}
	if out, err = pool.EP(t.Context(), side, "condor_who", "-wide"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, " "+job.ID()+" ") {
		t.Errorf("condor_who still tells of job %s:\n%s", job.ID(), out)
	}
}

// TestStarterLog: the log has the lines that tools look for, in their order.
func TestStarterLog(t *testing.T) {
	job := submit(t, job("exit=7"))[0]
	mustExit(t, job, 7)
	run, err := job.Run(soon(t, patience), 1)
	if err != nil {
		t.Fatal(err)
	}
	patterns := []string{
		`\*\* .*\(CONDOR_STARTER\) STARTING UP`,
		`\*\* PID = ` + strconv.Itoa(run.PID),
		`\*\* Log last touched `,
		`DaemonCore: command socket at <`,
		`Communicating with shadow <`,
		`Starting a VANILLA universe job with ID: ` + regexp.QuoteMeta(job.ID()),
		`About to exec /`,
		`Create_Process succeeded, pid=\d+`,
		`Process exited, pid=\d+, status=7`,
		`\*\*\*\* condor_starter \(condor_STARTER\) pid ` + strconv.Itoa(run.PID) + ` EXITING WITH STATUS 0`,
	}
	next := 0
	for _, pattern := range patterns {
		compiled := regexp.MustCompile(pattern)
		at := next
		for at < len(run.Lines) && !compiled.MatchString(run.Lines[at].Text) {
			at++
		}
		if at == len(run.Lines) {
			t.Errorf("no line like %s, or not after the one before it", pattern)
			continue
		}
		next = at + 1
	}
	if side == harness.Ours {
		for _, phase := range []string{harness.PhaseBind, harness.PhaseStageIn, harness.PhaseStart, harness.PhaseFinish} {
			if _, ok := run.Phases[phase]; !ok {
				t.Errorf("the log does not tell how long phase %s took", phase)
			}
		}
	}
}
