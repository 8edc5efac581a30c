//go:build pool

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/integration/harness"
)

// TestLifetime: a pilot whose time is over takes no more jobs, lets those that run go on for as long as they may, and then
// ends with 0 and says why. An idle one does so after its time without jobs.
func TestLifetime(t *testing.T) {
	oursOnly(t)
	t.Run("over", func(t *testing.T) {
		first := submit(t, job("ready sleep=8s exit=3"))[0]
		ready(t)
		next := submit(t, job("exit=4"))[0]
		end := live(t, "POD_STARTER_ACCEPT_TIME = 1", "POD_STARTER_RETIRE_TIME = 3600")
		mustExit(t, first, 3)
		running(t, first, 1)
		end("time is over (DAEMON_SHUTDOWN)")
		if events, err := next.Events(); err != nil || ran(events) {
			t.Errorf("a job ran although the pilot's time was over, or nobody knows: %v\n%s", err, next.Describe())
		}
		again(t)
		mustExit(t, next, 4)
	})
	t.Run("retired", func(t *testing.T) {
		long := submit(t, job("ready sleep=600s", "max_retries = 0"))[0]
		ready(t)
		end := live(t, "POD_STARTER_ACCEPT_TIME = 1", "POD_STARTER_RETIRE_TIME = 3")
		if _, err := long.WaitEvent(soon(t, patience), 4, 1); err != nil {
			t.Fatal(err)
		}
		if err := long.Tool(t.Context(), "condor_rm"); err != nil {
			t.Fatal(err)
		}
		end("time is over (DAEMON_SHUTDOWN)")
		again(t)
	})
	t.Run("idle", func(t *testing.T) {
		mustExit(t, submit(t, jobExit(5))[0], 5)
		live(t, "POD_STARTER_IDLE_TIME = 1", "UPDATE_INTERVAL = 1")("idle for too long (STARTD_NOCLAIM_SHUTDOWN)")
		again(t)
		mustExit(t, submit(t, jobExit(6))[0], 6)
	})
}

// TestLifetimeKeepsSettings: a time to accept jobs takes nothing away that an admin has set elsewhere.
func TestLifetimeKeepsSettings(t *testing.T) {
	oursOnly(t)
	file, err := os.Open(filepath.Join(pool.Root, "condor_config.d", "97-podstarter-lifetime.conf"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out, err := pool.EPInput(t.Context(), side, file, "sh", "-c", `dir=$(mktemp -d) && cat >"$dir/97.conf" && cd "$dir" &&
printf '%s\n' 'MAXJOBRETIREMENTTIME = 7200' 'SHUTDOWN_GRACEFUL_TIMEOUT = 9000' 'MASTER.DAEMON_SHUTDOWN = MY.Old' 'POD_STARTER_ACCEPT_TIME = 60' >60.conf &&
echo "LOCAL_CONFIG_FILE = $dir/60.conf, $dir/97.conf" >main &&
CONDOR_CONFIG="$dir/main" condor_config_val MAXJOBRETIREMENTTIME SHUTDOWN_GRACEFUL_TIMEOUT MASTER.DAEMON_SHUTDOWN; rm -r "$dir"`)
	if err != nil {
		t.Fatal(err)
	}
	if want := "7200\n9000\n(MY.Old) || time() - MY.DaemonStartTime >= 60\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// ran says whether a job has been executing.
func ran(events []harness.Event) bool {
	for _, e := range events {
		if e.Number == 1 {
			return true
		}
	}
	return false
}

// live gives the pilot under test a configuration for its lifetime. What it returns waits for the end of that pilot, and
// demands that it says so.
func live(t *testing.T, lines ...string) func(says string) {
	t.Helper()
	before := pilotStatus(t)
	file := "/etc/condor/config.d/96-e2e.conf"
	if pool.Mode == harness.Rootless {
		file = "/usr/share/condor/config.d/96-e2e.conf"
	}
	text := strings.NewReader(strings.Join(append(lines, "MASTER_UPDATE_INTERVAL = 1"), "\n") + "\n")
	if _, err := pool.EPInput(t.Context(), side, text, "sh", "-c", `cat > "$1"`, "live", file); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.EP(t.Context(), side, "condor_reconfig"); err != nil {
		t.Fatal(err)
	}
	return func(says string) {
		t.Helper()
		var end *corev1.ContainerStateTerminated
		err := harness.Poll(soon(t, patience), "the pilot's end", func() (bool, error) {
			now := pilotStatus(t)
			end = now.State.Terminated
			if now.RestartCount > before.RestartCount {
				end = now.LastTerminationState.Terminated
			}
			return end != nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if end.ExitCode != 0 || !strings.Contains(end.Message, says) {
			t.Errorf("the pilot ended with %d and says %q; want 0 and %q", end.ExitCode, end.Message, says)
		}
	}
}

// pilotStatus is the status of the pilot's container.
func pilotStatus(t *testing.T) corev1.ContainerStatus {
	t.Helper()
	text, err := pool.Kubectl(t.Context(), nil, "get", "pod", side.PodName(), "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == "pilot" {
			return c
		}
	}
	t.Fatalf("no status of the pilot: %s", text)
	return corev1.ContainerStatus{}
}

// again waits for the next pilot, in the same pod or, where pods end with their pilots, in a new one.
func again(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if pool.Sidecars {
		if out, err := pool.Kubectl(ctx, nil, "wait", "pod/"+side.PodName(), "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s"); err != nil {
			t.Fatalf("the pod does not end with its pilot: %v\n%s", err, out)
		}
	}
	if err := pool.Up(ctx); err != nil {
		t.Fatal(err)
	}
	// A new pod has namespaces of its own.
	if err := pool.AddSide(ctx, side); err != nil {
		t.Fatal(err)
	}
}
