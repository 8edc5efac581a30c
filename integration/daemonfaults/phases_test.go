//go:build pool

package daemonfaults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// TestKilledInEachPhase kills our starter in each phase of an activation. Something
// slow holds the phase open. The job runs again, and nothing is left of the first
// run.
func TestKilledInEachPhase(t *testing.T) {
	defer witness(t)()
	big := harness.File{Name: "big", Sparse: 400 << 20}
	slowHook(t)
	phases := []struct {
		name  string
		job   func(t *testing.T, name string) harness.Job
		reach func(t *testing.T, job harness.Job) // the phase
		again func(t *testing.T, job harness.Job) // what is done to the second run
		ran   bool                                // the first run is in the event log
	}{
		{
			name: "set-up",
			job: func(t *testing.T, name string) harness.Job {
				return submit(t, harness.Ours, name, lasting, `+HookKeyword = "FAULTS"`)
			},
			reach: hookRuns, again: finish,
		},
		{
			name: "stage-in",
			job: func(t *testing.T, name string) harness.Job {
				return submitWith(t, harness.Ours, name, lasting, []harness.File{big}, "transfer_input_files = big")
			},
			reach: func(t *testing.T, job harness.Job) { logged(t, job, "Started transferring input files") },
			again: finish,
		},
		{
			name:  "running",
			job:   func(t *testing.T, name string) harness.Job { return submit(t, harness.Ours, name, lasting) },
			reach: func(t *testing.T, job harness.Job) { running(t, job) },
			again: finish, ran: true,
		},
		{
			name: "stage-out",
			job: func(t *testing.T, name string) harness.Job {
				return submit(t, harness.Ours, name, "disk=big:300 "+lasting)
			},
			reach: func(t *testing.T, job harness.Job) {
				kill(t, running(t, job), unix.SIGTERM)
				logged(t, job, "transferring output files", "transfer output files")
			},
			again: finish, ran: true,
		},
		{
			name: "report",
			job:  func(t *testing.T, name string) harness.Job { return submit(t, harness.Ours, name, lasting) },
			reach: func(t *testing.T, job harness.Job) {
				// A shadow that does not answer keeps the starter waiting with
				// its first word about the job's end.
				running(t, job)
				shadow := shadowOf(t, job)
				kill(t, shadow, unix.SIGSTOP)
				t.Cleanup(func() { _ = harness.Kill(shadow, unix.SIGCONT) })
				finish(t, job)
				inLog(t, job, "Process exited")
			},
			again: finish, ran: true,
		},
	}
	t.Run("bind", killedInBind)
	t.Run("phases", func(t *testing.T) {
		for _, phase := range phases {
			t.Run(phase.name, func(t *testing.T) {
				t.Parallel()
				job := phase.job(t, "in-"+phase.name)
				starter := starterOf(t, job)
				phase.reach(t, job)
				kill(t, starter, unix.SIGKILL)
				if phase.name == "report" {
					kill(t, shadowOf(t, job), unix.SIGCONT)
				}
				event(t, job, harness.EventReconnectFailed, 1)
				if phase.again != nil {
					phase.again(t, job)
				}
				events := ended(t, job, 7)
				t.Log(numbers(events))
				runs := 1
				if phase.ran {
					runs = 2
				}
				if count(events, harness.EventExecute) != runs {
					t.Errorf("%d runs are in the event log, want %d: %s", count(events, harness.EventExecute), runs, harness.Headlines(events))
				}
			})
		}
	})
	nothingLeft(t, harness.Ours)
}

// slowHook installs a hook that prepares jobs of the keyword FAULTS. In the first
// run it never ends.
func slowHook(t *testing.T) {
	t.Helper()
	const (
		program = "/usr/local/libexec/faults-hook"
		script  = `#!/bin/sh
ad=$(cat)
[ "$(echo "$ad" | sed -n 's/^NumShadowStarts = //p')" = 1 ] || exit 0
exec sleep "$(echo "$ad" | sed -n 's/^ClusterId = //p')d"
`
		config  = "/etc/condor/config.d/99-faults.conf"
		install = `cat >"$0" && chmod 755 "$0" && echo "FAULTS_HOOK_PREPARE_JOB_BEFORE_TRANSFER = $0" >"$1"`
	)
	if _, err := pool.EPInput(t.Context(), harness.Ours, strings.NewReader(script), "sh", "-c", install, program, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.EP(context.Background(), harness.Ours, "rm", "-f", program, config); err != nil {
			t.Error(err)
		}
	})
}

// hookRuns waits until the hook of a job runs.
func hookRuns(t *testing.T, job harness.Job) {
	t.Helper()
	users := pool.Payloads(job.Side, pool.PayloadUsers())
	_, err := harness.WaitSome(soon(t), 1, func(p harness.Process) bool {
		return p.Comm == "sleep" && slices.Contains(p.Args, fmt.Sprintf("%dd", job.Cluster)) && users(p)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// killedInBind: no new container is made while the kubelet is stopped.
func killedInBind(t *testing.T) {
	kubelets, err := harness.Processes(func(p harness.Process) bool {
		return p.Comm == "kubelet" && slices.ContainsFunc(p.Args, func(a string) bool { return strings.Contains(a, pool.State+"/") })
	})
	if err != nil || len(kubelets) != 1 {
		t.Fatalf("looking for the kubelet: %v, %v", kubelets, err)
	}
	goOn := func() { _ = harness.Kill(kubelets[0], unix.SIGCONT) }
	kill(t, kubelets[0], unix.SIGSTOP)
	t.Cleanup(goOn)
	job := submit(t, harness.Ours, "in-bind", lasting)
	inLog(t, job, "Binding: container")
	kill(t, starterOf(t, job), unix.SIGKILL)
	goOn()
	event(t, job, harness.EventReconnectFailed, 1)
	finish(t, job)
	t.Log(numbers(ended(t, job, 7)))
}
