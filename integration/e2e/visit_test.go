//go:build pool

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// asUser runs a script on the submit side as the job's owner.
func asUser(t *testing.T, text string) string {
	t.Helper()
	result, err := pool.TryAP(soon(t, patience), "sh", "-c", text)
	if err != nil {
		t.Fatal(err)
	}
	if result.Code != 0 {
		t.Errorf("exit code %d of\n%s\n%s", result.Code, text, result.Stderr)
	}
	return result.Stdout
}

// TestModeVisit: a user looks into a running job with the usual tools: a command, a
// terminal, files both ways, and the output so far. Files that a session writes
// come back, and nothing of the session is left behind.
func TestModeVisit(t *testing.T) {
	job := submit(t, script(`#!/bin/sh
echo first
printf visited >/proc/$$/comm
until [ -e go ]; do sleep 0.1; done
echo last
`, "transfer_output_files = brought, late"))[0]
	running(t, job, 1)
	text := asUser(t, strings.NewReplacer("_CONDOR_JOB", "_CONDOR_JOB", "JOB", job.ID()).Replace(`
cd "$(mktemp -d)" && echo brought >brought || exit 1
condor_ssh_to_job -auto-retry JOB 'id -u; pwd; echo $_CONDOR_SLOT; cat; exit 3' <brought 2>/dev/null; echo code $?
condor_ssh_to_job -ssh 'ssh -tt' JOB 'tty; stty size >/dev/null && echo terminal' </dev/null 2>/dev/null | tr -d '\r'
printf 'put brought\nrename brought moved\nget moved\nget _condor_stdout\n' | condor_ssh_to_job -ssh 'sftp -q' JOB >/dev/null 2>&1
cat moved _condor_stdout
condor_ssh_to_job -ssh 'scp -q' JOB brought remote:brought && condor_ssh_to_job -ssh 'scp -q' JOB remote:brought again && cat again
condor_tail JOB
condor_ssh_to_job JOB 'cmp moved brought && (setsid sleep 1000 >/dev/null 2>&1 </dev/null &)'
condor_ssh_to_job JOB 'touch go; while kill -0 $_CONDOR_JOB_PIDS 2>/dev/null; do sleep 0.1; done; echo late >late'
`))
	lines := strings.Split(strings.TrimSpace(text), "\n")
	uid := fmt.Sprint(userOf(t, job))
	want := []string{uid, "/", "slot", "brought", "code 3", "/dev/pts/", "terminal", "brought", "first", "brought", "first"}
	if len(lines) != len(want) {
		t.Fatalf("%d lines instead of %d: %q", len(lines), len(want), lines)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("line %d is %q, not %q", i+1, line, want[i])
		}
	}
	mustExit(t, job, 0)
	if got := output(t, job, "out") + output(t, job, "brought") + output(t, job, "late"); got != "first\nlast\nbrought\nlate\n" {
		t.Errorf("what came back is %q", got)
	}
	if err := harness.WaitNone(soon(t, patience), pool.Payload(side)); err != nil {
		t.Error("something of a session is left:", err)
	}
}

// TestVisitWithoutShell: this works even in an image that holds only one program.
func TestVisitWithoutShell(t *testing.T) {
	oursOnly(t)
	job := submit(t, job("ready forever", "universe = docker", "docker_image = "+pool.Image("probe"),
		"container_service_names = web", "web_container_port = 8080"))[0]
	running(t, job, 1)
	ready(t)
	text := asUser(t, strings.NewReplacer("JOB", job.ID()).Replace(`
cd "$(mktemp -d)" || exit 1
condor_ssh_to_job -auto-retry JOB 'cat /image-name && cd / && pwd; ls | wc' 2>&1; echo code $?
printf 'pwd\nexit 4\n' | condor_ssh_to_job -ssh 'ssh -tt' JOB 2>/dev/null | tr -d '\r' | grep -c 'has no shell'
printf 'get /image-name\n' | condor_ssh_to_job -ssh 'sftp -q' JOB >/dev/null 2>&1; cat image-name
condor_tail -f JOB & tail=$!
condor_suspend JOB >/dev/null # with that, the shadow tells the schedd what it knows
until condor_q JOB -af web_HostPort | grep -x 8080; do sleep 0.3; done
condor_continue JOB >/dev/null
condor_rm JOB >/dev/null; wait $tail; echo code $?
`))
	for _, want := range []string{"no pipes", "code 2\n", "\n1\n", "probe\n", "\n8080\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if end := ending(t, job); !end.Removed {
		t.Error(end)
	}
}

// TestInteractive: condor_submit -interactive gives a shell, and the job ends
// with it.
func TestInteractive(t *testing.T) {
	requirements := "TARGET.HasPodStarter =?= true"
	if side == harness.Stock {
		requirements = "TARGET.HasPodStarter =!= true"
	}
	text := asUser(t, `
cd "$(mktemp -d)" || exit 1
cat >job.sub <<'END'
request_memory = 64
request_disk = 16M
requirements = `+requirements+`
log = log
queue
END
echo 'echo "in $_CONDOR_SLOT"; exit 5' | condor_submit -interactive job.sub 2>/dev/null
echo code $?
until grep -q '^005' log; do sleep 0.2; done
grep -A1 '^005' log
`)
	for _, want := range []string{"Welcome to ", "\nin slot", "\ncode 5\n", "(1) Normal termination (return value "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
}
