// Runtests runs all tests on real clusters and pools, in lanes, several at once, since most of the
// time is spent waiting for one or the other daemon. lanes.go says which, rounds.go what
// does not run each time.
//
// `integration/run-tests -lane guest` runs only that lane, `-lane rounds` all rounds. With other arguments, as in
// `integration/run-tests -run TestVacate -v`, it runs only the tests of e2e/ with HTCondor 25.14.
//
// A lane whose pool does not come up ends there. The last lines say how long each step
// took; what ran in turn, and what did not; which cases failed and passed at the second
// try, which do not fail the run, but which nobody should overlook; what failed, with the tests and their first words; what
// was not run for that reason; and which lane this machine cannot run.
//
// The exit code is 0 if every lane came to its end and nothing failed, 130 after SIGINT,
// SIGTERM or SIGHUP, else 1. The working directory is the project's.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // the second signal ends this program at once
	passed, err := run(ctx, os.Args[1:])
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "run-tests:", err)
		os.Exit(1)
	case ctx.Err() != nil:
		os.Exit(130)
	case !passed:
		os.Exit(1)
	}
}

// run runs the lanes and prints the outcome. It returns whether all passed.
func run(ctx context.Context, args []string) (bool, error) {
	root, err := os.Getwd()
	if err != nil {
		return false, fmt.Errorf("finding the project's directory: %w", err)
	}
	notes, err := newNotes()
	if err != nil {
		return false, err
	}
	for _, n := range notes {
		defer n.remove()
	}
	lanes, err := chosen(root, args, time.Now())
	if err != nil {
		return false, err
	}
	runAll(ctx, lanes, atOnce(runtime.NumCPU()))
	for _, l := range lanes {
		l.printTimes(os.Stdout)
	}
	for _, n := range notes {
		if err := n.print(os.Stdout); err != nil {
			return false, err
		}
	}
	// Last, since a log's end is what people see of it.
	passed := true
	for _, l := range lanes {
		for _, line := range l.failures() {
			passed = false
			if strings.HasPrefix(line, detail) {
				fmt.Fprintln(os.Stderr, line)
				continue
			}
			fmt.Fprintf(os.Stderr, "failed: %s lane: %s\n", l.name, line)
		}
	}
	for _, l := range lanes {
		if l.leftOut != "" {
			fmt.Fprintf(os.Stderr, "LEFT OUT: %s lane, so nothing ran with %s: %s\n", l.name, l.subject, l.leftOut)
		}
	}
	return passed, nil
}

// atOnce is how many lanes run at the same time on so many processors. With more of them, daemons wait for a processor for longer than
// tests wait for daemons, and tests fail by time.
func atOnce(processors int) int { return max(processors, 2) }

// runAll runs the lanes, n at a time, in their order.
func runAll(ctx context.Context, lanes []*lane, n int) {
	var all errgroup.Group
	all.SetLimit(n)
	for _, l := range lanes {
		all.Go(func() error {
			l.run(ctx)
			return nil
		})
	}
	_ = all.Wait() // lanes keep what failed
}

// chosen are the lanes to run: all, or one by its name, or one with the tests of e2e/ that the arguments choose.
func chosen(root string, args []string, now time.Time) ([]*lane, error) {
	pool := filepath.Join(root, "integration", ".state", "bin", "pool")
	first := &lane{name: "first", out: os.Stdout, errs: os.Stderr}
	if len(args) > 0 && args[0] != "-lane" {
		first.steps = someTests(pool, args)
		return []*lane{first}, nil
	}
	first.steps = firstLane(pool)
	state := func(name string) string { return filepath.Join(root, "integration", name) }
	second := besideFirst("second", pool, state(".state2"), secondLane(pool))
	guest := besideFirst("guest", pool, state(".state3"), guestLane(pool, state(".state3")))
	guest.subject = "cgroup v2, and the container runtime of a guest"
	remove := guest.after
	guest.after = func() []step { return append(guest.console(state(".state3")), remove()...) }
	rounds := besideFirst("rounds", pool, state(".state4"), nil)
	failures := besideFirst("failures", pool, state(".state5"), failuresLane(pool))
	if len(args) == 0 {
		var err error
		rounds.steps, err = roundAt(now, pool)
		return []*lane{first, second, guest, failures, rounds}, err
	}
	rounds.steps = slices.Concat(steps(roundsOf(pool))...)
	for _, l := range []*lane{first, second, failures, guest, rounds} {
		if len(args) == 2 && l.name == args[1] {
			return []*lane{l}, nil
		}
	}
	return nil, fmt.Errorf("there is no lane %q; name first, second, failures, guest or rounds", strings.Join(args[1:], " "))
}

// besideFirst is a lane whose pool has a state directory of its own, and is removed in the end.
func besideFirst(name, pool, state string, steps []step) *lane {
	// A run that was killed has left its pool there.
	clear := removePool(pool, state)
	return &lane{
		name: name, steps: steps, before: clear, after: clear, out: os.Stdout, errs: os.Stdout, prefix: name + ": ",
		env: []string{"PODSTARTER_STATE=" + state},
	}
}

// console shows the end of what the guest's kernel has printed, if the lane has failed: it
// may have panicked.
func (l *lane) console(state string) []step {
	log := filepath.Join(state, "log", "guests.log")
	if _, err := os.Stat(log); err != nil || len(l.failed) == 0 {
		return nil
	}
	return []step{{name: "the guest's console", argv: []string{"tail", "-n", "60", log}}}
}

// removePool gives the steps that leave nothing of the pool in a state directory.
func removePool(pool, state string) func() []step {
	return func() []step {
		if _, err := os.Lstat(state); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return []step{
			{name: "pool down", argv: []string{pool, "down"}, vital: true},
			{name: "removing " + state, argv: []string{"rm", "-rf", state}, vital: true},
		}
	}
}
