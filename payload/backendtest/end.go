package backendtest

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// lost: Lost sends the end of a container under its job once, with its reason. No process
// of the job is alive when the next job gets the slot.
func lost(t *testing.T, f Fixture) {
	l := lease(t, f.Backend)
	c := bound(t, l, "")
	notLost(t, c)
	j := start(t, l, c, "tree")
	f.End(t, c)
	select {
	case err := <-c.Lost():
		if err == nil || err.Error() == "" {
			t.Errorf("lost without a reason: %v", err)
		}
	case <-agenttest.Context(t).Done():
		t.Fatal("Lost does not report the loss")
	}
	if _, err := c.Client().Wait(agenttest.Context(t)); !errors.Is(err, payload.ErrLost) {
		t.Errorf("wait: %v", err)
	}
	if err := c.Client().Sweep(agenttest.Context(t)); !errors.Is(err, payload.ErrLost) {
		t.Errorf("sweep: %v", err)
	}
	release(t, l)
	notLost(t, c)
	next := lease(t, f.Backend)
	if alive := j.alive(); agenttest.Root() && len(alive) > 0 {
		t.Errorf("processes %v have outlived their container", alive)
	}
	if exit := start(t, next, bound(t, next, ""), "exit", "0").wait(); exit.WaitStatus != 0 {
		t.Errorf("exit %+v", exit)
	}
}

// notLost checks that neither a loss nor an end is reported.
func notLost(t *testing.T, c payload.Container) {
	t.Helper()
	select {
	case err := <-c.Lost():
		t.Errorf("lost: %v", err)
	case n := <-c.Ending():
		t.Errorf("reported as ending: %+v", n)
	default:
	}
}

// takenDown: a planned end of a container is reported beforehand, and the job goes on until
// then.
func takenDown(t *testing.T, f Fixture) {
	l := lease(t, f.Backend)
	c := bound(t, l, "")
	j := start(t, l, c, "sleep")
	notLost(t, c)
	if f.TakeDown != nil {
		f.TakeDown(t, c)
		select {
		case n := <-c.Ending():
			if n.Reason == "" || n.Left < 0 {
				t.Errorf("notice %+v", n)
			}
		case <-agenttest.Context(t).Done():
			t.Fatal("Ending does not report the end")
		}
	}
	j.goesOn()
	notLost(t, c)
	j.sweep()
}

// releaseKills: Release kills the lease's payload, so that the next lease never meets it.
func releaseKills(t *testing.T, f Fixture) {
	l := lease(t, f.Backend)
	c := bound(t, l, "")
	j := start(t, l, c, "tree")
	release(t, l)
	// All leases, since the next one may be of another container: a program that is being
	// started has this one's lock until it runs (fork(2), FD_CLOEXEC).
	for range max(f.Slots, 1) {
		lease(t, f.Backend)
	}
	if alive := j.alive(); len(alive) > 0 {
		t.Errorf("processes %v have outlived their lease", alive)
	}
}

// afterRelease: a released lease cannot be used any more, and is not lost.
func afterRelease(t *testing.T, f Fixture) {
	l := lease(t, f.Backend)
	c := bound(t, l, "")
	release(t, l)
	release(t, l)
	bindsNotAgain(t, l)
	s := agenttest.Spec(t, "exit", "0")
	s.UID, s.GID = l.Owner()
	if _, err := c.Client().Start(agenttest.Context(t), s); !errors.Is(err, payload.ErrLost) {
		t.Errorf("start: %v", err)
	}
	if _, err := c.Client().Wait(agenttest.Context(t)); err == nil {
		t.Error("a payload that was never started has ended")
	}
	notLost(t, c)
	never := lease(t, f.Backend) // never bound
	release(t, never)
	bindsNotAgain(t, never)
}

// bindsNotAgain: a mistake of the caller is an error, but not a verdict that blames
// somebody else.
func bindsNotAgain(t *testing.T, l payload.Lease) {
	t.Helper()
	_, err := l.Bind(agenttest.Context(t), request(""))
	if v := (*payload.Verdict)(nil); err == nil || errors.As(err, &v) {
		t.Errorf("binding a released lease: %v", err)
	}
}

// nothingLeaks: Release frees what a job used in this process, even if its binding failed.
func nothingLeaks(t *testing.T, f Fixture) {
	cycle := func() {
		l := lease(t, f.Backend)
		if f.Images != nil {
			bound(t, l, f.Images.Other)
		}
		if _, err := l.Bind(agenttest.Context(t), request("not an image")); err == nil {
			t.Error("bound to something that is not an image")
		}
		if f.Images == nil || f.Rebinds {
			c := bound(t, l, "")
			start(t, l, c, "exit", "0").wait()
		}
		release(t, l)
	}
	const cycles = 5
	goroutines, files := resources(t)
	for range cycles {
		cycle()
	}
	ctx := agenttest.Context(t)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		g, f := resources(t)
		// Fewer than one per job: created once, not leaked.
		if g < goroutines+cycles && f < files+cycles {
			return
		}
		select {
		case <-again.C: // some end a moment after their lease
		case <-ctx.Done():
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines and %d files more after %d jobs\n%s", g-goroutines, f-files, cycles, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func resources(t *testing.T) (goroutines, files int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return runtime.NumGoroutine(), len(open)
}
