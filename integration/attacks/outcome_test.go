//go:build pool

package attacks

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
	"podstarter/wrapper/agent"
)

// statuses calls visit with what the kubelet reports about each payload container.
func (w *target) statuses(t *testing.T, visit func(container map[string]any)) {
	t.Helper()
	pod, err := get(t.Context(), "pod/"+w.side.PodName())
	if err != nil {
		t.Fatal(err)
	}
	status := object(pod, "status")
	for _, c := range append(list(status, "initContainerStatuses"), list(status, "containerStatuses")...) {
		if slices.Contains(w.containers(), fmt.Sprint(c["name"])) {
			visit(c)
		}
	}
}

// containerOf is the container of a process, by its control group: the kubelet's
// report may be a second old.
func containerOf(t *testing.T, p harness.Process) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID))
	if err != nil {
		t.Fatal(err)
	}
	id := containerID.FindString(string(text))
	if id == "" {
		t.Fatalf("the control group of %v names no container:\n%s", p, text)
	}
	return id
}

var containerID = regexp.MustCompile(`[0-9a-f]{64}`)

// hadToBeKilled waits until the kubelet reports how one of the containers has
// ended, and says so if it was killed. Nobody knows which of them the next job
// takes: without a user for each slot the attacker's end is also its neighbour's,
// so both are free.
func (w *target) hadToBeKilled(t *testing.T, ids []string) (how []string) {
	t.Helper()
	err := harness.Poll(soon(t, patience), fmt.Sprintf("the end of one of the containers %s", ids), func() (bool, error) {
		found := false
		w.statuses(t, func(c map[string]any) {
			end := object(object(c, "lastState"), "terminated")
			if !slices.Contains(ids, containerID.FindString(fmt.Sprint(end["containerID"]))) {
				return
			}
			found = true
			if code := fmt.Sprint(end["exitCode"]); code != fmt.Sprint(agent.ExitLeft) {
				how = []string{"the container ended with exit code " + code}
			}
		})
		return found, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return how
}

// sendPipe runs a job whose output is a named pipe, and waits until it has ended
// or its starter waits for somebody to write into the pipe.
func (w *target) sendPipe(t *testing.T, a *attempts) {
	t.Helper()
	before := w.starters(t, nil)
	job := w.submitWhere(t, "pipe", onlyOnce, "fifo=pipe", "transfer_output_files = pipe")
	var waiting []harness.Process
	err := harness.Poll(soon(t, patience), "the end of a job with a named pipe", func() (bool, error) {
		waiting = slices.DeleteFunc(w.starters(t, before), func(p harness.Process) bool { return !waitsForPipe(p) })
		events, err := job.Events()
		ended := slices.ContainsFunc(events, func(e harness.Event) bool { _, ok := harness.EndingOf(e); return ok })
		return ended || len(waiting) > 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
	a.got(Pipe)
	for _, p := range waiting {
		a.got(Pipe, "the starter waits for ever: "+p.String())
		if err := harness.Kill(p, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// waitsForPipe looks for a thread that sleeps in the opening of a pipe
// (fs/pipe.c:wait_for_partner).
func waitsForPipe(p harness.Process) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/wchan", p.PID))
	return slices.ContainsFunc(threads, func(path string) bool {
		where, _ := os.ReadFile(path)
		return strings.Contains(string(where), "partner") || strings.Contains(string(where), "fifo")
	})
}

// TestHostileOutput: a job leaves ten thousand files, names that are not valid
// text, links to everywhere, pipes, and a tree whose paths are too long to name.
// Everything that can be sent arrives, nothing else does, and nothing is left.
func TestHostileOutput(t *testing.T) {
	w := targets[closedPod]
	w.set(t, Settings[0])
	job := w.submit(t, "flood", "flood=flood", "transfer_output_files = flood")
	if end := w.mustEnd(t, job); end.Held {
		t.Fatal(end)
	}
	entries, err := os.ReadDir(filepath.Join(job.Dir, "flood"))
	if err != nil {
		t.Fatal(err)
	}
	plain, strange := 0, []string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(job.Dir, "flood", e.Name()))
		switch {
		case err != nil || !e.Type().IsRegular():
			t.Errorf("%q arrived, a %v: %v", e.Name(), e.Type(), err)
		case slices.Contains(facts.StrangeNames, e.Name()):
			strange = append(strange, e.Name())
		default:
			plain++
		}
		if string(text) != e.Name() {
			t.Errorf("%q holds %.80q", e.Name(), text)
		}
	}
	if plain != facts.FloodFiles || len(strange) != len(facts.StrangeNames) {
		t.Errorf("%d files with plain names arrived, of %d, and with strange ones %q, of %q", plain, facts.FloodFiles, strange, facts.StrangeNames)
	}
	w.starterGone(t)
	left, err := os.ReadDir(filepath.Join(filepath.Dir(w.wrapperVolume), "execute", "jobs"))
	if err != nil || len(left) > 0 {
		t.Errorf("what is left of sandboxes: %v, %v", left, err)
	}
}
