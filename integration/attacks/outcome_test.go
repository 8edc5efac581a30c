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

// endOf is the container of whose end the kubelet tells last, for one container of the pod.
func endOf(status map[string]any) string {
	return containerID.FindString(fmt.Sprint(object(object(status, "lastState"), "terminated")["containerID"]))
}

// ends are the containers of whose end the kubelet tells when it tells of all that run: any other end that it
// tells of later comes later.
func (w *target) ends(t *testing.T) (told []string) {
	t.Helper()
	var running, reported []string
	err := harness.Poll(soon(t, patience), "the kubelet's report on the containers that run", func() (bool, error) {
		told, running, reported = nil, nil, nil
		for _, p := range w.wrappers(t) {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID)); err == nil { // it has not ended meanwhile
				running = append(running, containerID.FindString(string(text)))
			}
		}
		w.statuses(t, func(c map[string]any) {
			told = append(told, endOf(c))
			if len(object(object(c, "state"), "running")) > 0 {
				reported = append(reported, containerID.FindString(fmt.Sprint(c["containerID"])))
			}
		})
		slices.Sort(running)
		slices.Sort(reported)
		return len(reported) == len(w.containers()) && slices.Equal(slices.Compact(running), reported), nil
	})
	if err != nil {
		t.Fatalf("%v; wrappers run in %v, and the kubelet tells of %v", err, running, reported)
	}
	return told
}

// hadToBeKilled waits until the kubelet reports how a container has ended, other than those of whose end it has told before,
// and says so if it was killed. Nobody knows which of them the next job takes: without a user for each slot the attacker's end is
// also its neighbour's, so both are free. And of each container of the pod the kubelet reports one end, the last: if the next job's
// binding took two attempts, it is not that of the container which the attacker had.
func (w *target) hadToBeKilled(t *testing.T, told []string) (how []string) {
	t.Helper()
	var last []string
	err := harness.Poll(soon(t, patience), "the end of a container", func() (bool, error) {
		found := false
		last = nil
		w.statuses(t, func(c map[string]any) {
			id := endOf(c)
			last = append(last, id)
			if id == "" || slices.Contains(told, id) {
				return
			}
			found = true
			if code := fmt.Sprint(object(object(c, "lastState"), "terminated")["exitCode"]); code != fmt.Sprint(agent.ExitLeft) {
				how = []string{"the container ended with exit code " + code}
			}
		})
		return found, nil
	})
	if err != nil {
		t.Fatalf("%v; the kubelet tells of the ends of %v, as before, %v", err, last, told)
	}
	return how
}

// TestEndIsNoticed: also if a container of the pod ended twice before anybody looked, as on a slow machine.
func TestEndIsNoticed(t *testing.T) {
	w := targets[closedPod]
	w.set(t, Settings[0])
	told := w.ends(t)
	for range 2 {
		w.mustEnd(t, w.submit(t, "next", "out=done"))
		w.ends(t)
	}
	if how := w.hadToBeKilled(t, told); len(how) > 0 {
		t.Errorf("%v", how)
	}
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
