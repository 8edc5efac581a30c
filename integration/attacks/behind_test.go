//go:build pool

package attacks

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// behind kills the starter of a job whose wrapper does not notice, and lets another
// job follow at once in the same container.
func (w *target) behind(t *testing.T, a *attempts) {
	t.Helper()
	inside := pool.InPod(w.side)
	starters, wrappers := w.starters(t, nil), w.wrappers(t)
	first := w.submitWhere(t, "first", onlyOnce, "covet forever -- first")
	if _, err := harness.WaitSome(soon(t, patience), 1, func(p harness.Process) bool { return inside(p) && slices.Contains(p.Args, "covet") }); err != nil {
		t.Fatal(err)
	}
	wrapper := w.newWrapper(t, wrappers)
	started := w.starters(t, starters)
	if len(started) != 1 {
		t.Fatalf("starters of job %s: %v", first.ID(), started)
	}
	if err := unix.Kill(wrapper.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goOn := func() { _ = unix.Kill(wrapper.PID, unix.SIGCONT) } // unless its container is gone
	defer goOn()
	if err := harness.Kill(started[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	next := w.submit(t, "behind", "out=done")
	var met []harness.Process
	// Who got in goes with its container, seconds later. harness.Poll leaves long pauses where a look takes long.
	for ctx, ended := soon(t, patience), false; !ended && len(met) == 0; {
		if err := ctx.Err(); err != nil {
			t.Fatalf("waiting for the end of the job behind: %v", err)
		}
		var err error
		met, err = harness.Processes(func(p harness.Process) bool { return inside(p) && slices.Contains(p.Args, facts.GotIn) })
		if err != nil {
			t.Fatal(err)
		}
		events, err := next.Events()
		if err != nil {
			t.Fatal(err)
		}
		ended = slices.ContainsFunc(events, func(e harness.Event) bool { _, ok := harness.EndingOf(e); return ok })
	}
	a.got(Behind)
	for _, p := range met {
		a.got(Behind, "reads the sandbox of the next job: "+p.String())
	}
	goOn()
	w.mustEnd(t, next)
	w.starterGone(t)
}
