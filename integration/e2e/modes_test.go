//go:build pool

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// The tests whose names begin with TestMode, and those beside them in
// integration/run-tests, run in each mode of the pool: jobs can rely on the same
// things whatever pilot and payload container share (docs/admin/modes.md).

// look is what a job can do in its surroundings: one line for each thing.
const look = `#!/bin/sh
for file in /proc/[0-9]*/comm; do
	read -r name <"$file" && echo "sees process $name"
done 2>/dev/null
id -G | tr ' ' '\n' | sed 's/^/is in group /'
for path in /run/podstarter/control /run/podstarter/control/payload /run/podstarter/private /var/lib/condor/etc /var/log/condor; do
	ls "$path" >/dev/null 2>&1 && echo "can list $path"
done
for path in /run/podstarter/control/mark /run/podstarter/control/payload/exit.mark.json /var/lib/condor/execute/mark /var/lib/podstarter/scratch/mark; do
	(: >"$path") 2>/dev/null && echo "can write $path"
done
(: >>/proc/slabinfo) 2>/dev/null && echo "can write the wrapper"
for secret in /proc/1/environ /proc/1/root/etc /proc/1/fd; do
	ls "$secret/" >/dev/null 2>&1 && echo "can list $secret"
	(: <"$secret") 2>/dev/null && echo "can read $secret"
done
kill -CONT 1 2>/dev/null && echo "can signal process 1"
ls -a "$(dirname "$_CONDOR_SCRATCH_DIR")" | sed 's/^/has beside it /'
`

// script is a job that is a shell script in the default image.
func script(text string, commands ...string) harness.Submission {
	lines := append([]string{
		"executable = script", "should_transfer_files = YES", "output = out", "error = err",
		"request_cpus = 1", "request_memory = 64", "request_disk = 16M", "job_max_vacate_time = 2",
		"transfer_input_files = " + harness.ProbeName,
	}, commands...)
	return harness.Submission{Commands: strings.Join(lines, "\n"), Files: []harness.File{
		probe, {Name: "script", Mode: 0o755, Content: []byte(text)}}}
}

// TestModeKeepsTheJobOut: the job cannot reach anything that starter and wrapper rely
// on, even if it has the pilot's own user ID.
func TestModeKeepsTheJobOut(t *testing.T) {
	oursOnly(t)
	job := submit(t, script(look))[0]
	mustExit(t, job, 0)
	seen := strings.Split(strings.TrimSpace(output(t, job, "out")), "\n")
	t.Logf("in mode %s: %q", pool.Mode, seen)
	for _, line := range seen {
		if strings.HasPrefix(line, "can ") {
			t.Errorf("the job %s", line)
		}
	}
	user := userOf(t, job)
	if want := fmt.Sprintf("is in group %d", user); !slices.Contains(seen, want) ||
		slices.ContainsFunc(seen, func(line string) bool { return strings.HasPrefix(line, "is in group ") && line != want }) {
		t.Errorf("the job's groups are not just its own, %d", user)
	}
	sees := slices.Contains(seen, "sees process condor_startd")
	if shares := pool.Mode == harness.Shared; sees != shares {
		t.Errorf("the job sees the startd: %t, want %t", sees, shares)
	}
	if !slices.Contains(seen, "sees process sh") && !slices.Contains(seen, "sees process script") {
		t.Error("the job does not see even itself: the test shows nothing")
	}
	// The job must not replace what the startd writes for the starter.
	if pool.Mode == harness.Rootless && slices.ContainsFunc(seen, func(line string) bool { return strings.Contains(line, "update.ad") }) {
		t.Error("the startd's file is in the job's volume")
	}
}

// TestModeOutput: the job's files are transferred, and what it closed to everybody
// does not stay behind.
func TestModeOutput(t *testing.T) {
	job := submit(t, script("#!/bin/sh\nset -e\n"+
		"mkdir -p made/sub closed/sub; echo one >made/file; echo two >made/sub/file; chmod 0400 made/file\n"+
		"echo three >closed/sub/file; chmod 0 closed/sub/file closed/sub closed\n"+
		"echo four >result; exit 4\n",
		"transfer_output_files = made, result"))[0]
	mustExit(t, job, 4)
	for name, want := range map[string]string{"made/file": "one\n", "made/sub/file": "two\n", "result": "four\n"} {
		if got := output(t, job, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	run, err := job.Run(soon(t, patience), 1)
	if err != nil {
		t.Fatal(err)
	}
	if run.Has("Failed to remove the sandbox") {
		t.Errorf("something stays behind:\n%s", run.Text())
	}
}

// TestModeSuspend: all processes of the job stop, and continue.
func TestModeSuspend(t *testing.T) {
	job := submit(t, job("detach=2 ready forever"))[0]
	running(t, job, 1)
	ready(t)
	members := func() []harness.Process {
		found, err := harness.WaitSome(soon(t, patience), 3, payload())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}()
	until := func(stopped bool) {
		t.Helper()
		err := harness.Poll(soon(t, patience), fmt.Sprintf("stopped: %t", stopped), func() (bool, error) {
			for _, p := range members {
				state, err := stateOf(p.PID)
				if err != nil || (state == "T") != stopped {
					return false, err
				}
			}
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := job.Tool(t.Context(), "condor_suspend"); err != nil {
		t.Fatal(err)
	}
	until(true)
	if _, err := job.WaitEvent(soon(t, patience), harness.EventSuspended, 1); err != nil {
		t.Fatal(err)
	}
	if err := job.Tool(t.Context(), "condor_continue"); err != nil {
		t.Fatal(err)
	}
	until(false)
	if err := job.Tool(t.Context(), "condor_rm"); err != nil {
		t.Fatal(err)
	}
	if err := harness.WaitNone(soon(t, gone), payload()); err != nil {
		t.Fatal(err)
	}
}

// stateOf is the state of a process of this machine, as /proc/PID/stat has it.
func stateOf(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state, nil
}

// TestModeUsage: CPU time of children that have ended counts, orphans included, and so
// does memory.
func TestModeUsage(t *testing.T) {
	job := submit(t, script("#!/bin/sh\n"+
		"./probe burn=0.7 & ./probe burn=0.7 & wait\n"+
		"( setsid ./probe burn=0.7 file=orphan:done & ) &\n"+
		"./probe memory=96 sleep=4s\n"+
		"while [ ! -e orphan ]; do sleep 0.1; done\nexit 6\n", "request_memory = 256"))[0]
	mustExit(t, job, 6)
	ad, err := job.History(soon(t, patience))
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) float64 {
		v, err := ad.GetReal(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return v
	}
	// Both are whole seconds of at least 2.1; memory is in KiB.
	if cpu := value("RemoteUserCpu") + value("RemoteSysCpu"); cpu < 1 || cpu > 5 {
		t.Errorf("%g s of CPU time, want some 2", cpu)
	}
	if memory := value("ResidentSetSize_RAW"); memory < 96<<10 || memory > 140<<10 {
		t.Errorf("%g KiB of memory, want some %d", memory, 96<<10)
	}
}

// TestModeImages: an image is bound by digest once the digest is known; learning it
// needs the container's identity. A hostile image gets nothing from its container.
func TestModeImages(t *testing.T) {
	oursOnly(t)
	image := func(name string) string { return "universe = docker\ndocker_image = " + pool.Image(name) }
	jobs := []harness.Job{
		submit(t, job("sleep=3s facts", image("busybox")))[0],
		submit(t, job("suid=/bin/rootsh facts", image("hostile")))[0],
		submit(t, job("facts", image("busybox")))[0],
	}
	for i, want := range []string{"busybox", "hostile", "busybox"} {
		mustExit(t, jobs[i], 0)
		seen, err := jobs[i].Facts("out")
		if err != nil {
			t.Fatal(err)
		}
		if seen.Image != want {
			t.Errorf("job %d asked for %s and ran in %q", i, want, seen.Image)
		}
		checkRights(t, seen)
		if shell, ok := seen.Setuid["/bin/rootsh"]; ok && shell.Effective != seen.UID {
			t.Errorf("a setuid-root shell ran as user %d", shell.Effective)
		}
	}
	run, err := jobs[2].Run(soon(t, patience), 1)
	if err != nil {
		t.Fatal(err)
	}
	if !run.Has("@sha256:") {
		t.Errorf("the second job in busybox was not bound by digest:\n%s", run.Text())
	}
}
