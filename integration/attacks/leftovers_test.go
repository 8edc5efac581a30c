//go:build pool

package attacks

import (
	"slices"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// survivors are processes that the attacker has left, once its starter is gone.
// Unless they are expected, it waits until there are none: the defence takes a
// moment.
func (w *target) survivors(t *testing.T, expected bool) []string {
	t.Helper()
	w.starterGone(t)
	return w.leftOf(t, expected, func(p harness.Process) bool {
		return slices.Contains(p.Args, "linger") || slices.Contains(p.Args, "halt") || slices.Contains(p.Args, "grow")
	})
}

// leftOf are the processes of the pod that keep selects: those that are there if
// they are expected, else those that do not go away.
func (w *target) leftOf(t *testing.T, expected bool, keep func(harness.Process) bool) (left []string) {
	t.Helper()
	inside := pool.InPod(w.side)
	mine := func(p harness.Process) bool { return inside(p) && keep(p) }
	if !expected {
		if err := harness.WaitNone(soon(t, time.Minute), mine); err != nil {
			return []string{err.Error()}
		}
		return nil
	}
	found, err := harness.Processes(mine)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		left = append(left, p.String())
	}
	return left
}

// starterGone waits until only the victim's starter runs, and then a little for
// others to hear of it: a command in the pod takes longer.
func (w *target) starterGone(t *testing.T) {
	t.Helper()
	starters := pool.Starters(w.side)
	err := harness.Poll(soon(t, patience), "the end of the starter", func() (bool, error) {
		found, err := harness.Processes(starters)
		return len(found) <= len(w.victims(t)), err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.inPilot(t, nil, "condor_version")
}
