//go:build pool

package attacks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// room is how many more processes and threads the pod may have during a fork bomb than
// now, limited as by the kubelet's podPidsLimit: twice the site's limit for a job.
const room = 400

// bomb runs a fork bomb, and checks that the job is ended before the pod is full, and
// that the neighbours continue to work.
func (w *target) bomb(t *testing.T, a *attempts) {
	t.Helper()
	neighbours := w.starters(t, nil)
	isFull, unlimited := w.limitProcesses(t)
	job := w.submitWhere(t, "bomb", onlyOnce, "crowd forever -- bomb")
	inside := pool.InPod(w.side)
	refused, held := false, ""
	err := harness.Poll(soon(t, patience), "the end of a fork bomb", func() (bool, error) {
		found, err := harness.Processes(func(p harness.Process) bool {
			return inside(p) && p.Comm == facts.Ready && slices.Contains(p.Args, "bomb")
		})
		if err != nil {
			return false, err
		}
		refused = len(found) > 0
		events, err := job.Events()
		for _, e := range events {
			if end, ok := harness.EndingOf(e); ok {
				held = end.String()
			}
		}
		return refused || held != "", err
	})
	if err != nil {
		t.Fatal(err)
	}
	full := refused && isFull()
	// Or what ends the job could not run either.
	unlimited()
	if a.got(ForkBomb); full {
		a.got(ForkBomb, fmt.Sprintf("the pod has %d processes more, and room for none", room))
	} else if left := w.starters(t, nil); len(left) < len(neighbours) {
		a.got(ForkBomb, fmt.Sprintf("of the starters %v only %v are left", neighbours, left))
	} else if refused && pool.OwnUsers {
		t.Log("the kernel ended the fork bomb: it counts the users of the pod's own user namespace")
	} else if !strings.Contains(held, "processes") {
		t.Errorf("the fork bomb was not ended by a limit: %s", held)
	}
	if _, err := pool.AP(t.Context(), "condor_rm", job.ID()); err != nil {
		t.Fatal(err)
	}
	if err := harness.WaitNone(soon(t, patience), func(p harness.Process) bool { return inside(p) && slices.Contains(p.Args, "100000") }); err != nil {
		t.Fatal(err)
	}
}

// limitProcesses limits the processes of the pod, until unlimited is called.
func (w *target) limitProcesses(t *testing.T) (isFull func() bool, unlimited func()) {
	t.Helper()
	dir := w.processGroup(t)
	current := func() int {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, "pids.current"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	now := current()
	limit := func(most string) {
		if err := os.WriteFile(filepath.Join(dir, "pids.max"), []byte(most), 0o644); err != nil {
			t.Error(err)
		}
	}
	limit(strconv.Itoa(now + room))
	t.Cleanup(func() { limit("max") })
	// Some may have ended since.
	return func() bool { return current() > now+room*3/4 }, func() { limit("max") }
}

// processGroup is the control group that counts the processes of the pod, in either
// version.
func (w *target) processGroup(t *testing.T) string {
	t.Helper()
	inside := pool.Inside(w.side)
	master, err := harness.One("master of "+string(w.side), func(p harness.Process) bool { return inside(p) && p.Comm == "condor_master" })
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", master.PID))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		kind, path, _ := strings.Cut(rest, ":")
		dir := filepath.Join("/sys/fs/cgroup", kind, filepath.Dir(path))
		if _, err := os.Stat(filepath.Join(dir, "pids.max")); err == nil && (kind == "pids" || kind == "") {
			return dir
		}
	}
	t.Fatalf("no control group counts the processes of %v:\n%s", master, text)
	return ""
}
