// Runtests runs tests on real clusters and pools, in lanes, several at once, since most of the
// time is spent waiting for one or the other daemon. lanes.go says which.
//
// The lanes first and second belong to each run. The others come in turn, beginning with another one each hour, and of
// these no step begins after 20 minutes (-for): a slow machine has some of them in each run. One of them is a round
// (rounds.go), which differs from hour to hour.
//
// `integration/run-tests -lane guest` runs only that lane, `-lane rounds` all rounds, `-for 3h` all lanes. With other arguments, as in
// `integration/run-tests -run TestVacate -v`, it runs only the tests of e2e/ with HTCondor 25.14.
//
// A lane whose pool does not come up ends there. The last lines say how long each step
// took; what ran in turn, and what did not; what did not begin in time; which cases failed and passed at the second
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

	"podstarter/integration/turn"
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
	for _, l := range lanes {
		if len(l.late) > 0 {
			fmt.Printf("Not in time: %s lane: %s; to run it: integration/run-tests -lane %s\n", l.name, stepNames(l.late), l.name)
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

// inTime is how long after a run's begin a step of the lanes in turn may begin.
const inTime = 20 * time.Minute

// chosen are the lanes to run: all, or one by its name, or one with the tests of e2e/ that the arguments choose.
func chosen(root string, args []string, now time.Time) ([]*lane, error) {
	pool := filepath.Join(root, "integration", ".state", "bin", "pool")
	limit := inTime
	if len(args) == 2 && args[0] == "-for" {
		var err error
		if limit, err = time.ParseDuration(args[1]); err != nil {
			return nil, fmt.Errorf("reading -for, in which time steps may begin: %w", err)
		}
		args = nil
	}
	first := &lane{name: "first", out: os.Stdout, errs: os.Stderr}
	if len(args) > 0 && args[0] != "-lane" {
		first.steps = someTests(pool, args)
		return []*lane{first}, nil
	}
	first.steps = firstLane(pool)
	state := func(name string) string { return filepath.Join(root, "integration", ".state-"+name) }
	beside := func(name string, steps []step) *lane { return besideFirst(name, pool, state(name), steps) }
	guest := beside("guest", guestLane(pool, state("guest")))
	guest.subject = "cgroup v2, and the container runtime of a guest"
	remove := guest.after
	guest.after = func() []step { return append(guest.console(state("guest")), remove()...) }
	rounds := beside("rounds", nil)
	always := []*lane{first, beside("second", secondLane(pool))}
	inTurn := []*lane{
		beside("attacks", attacksLane(pool)), guest, beside("rules", rulesLane(pool)), beside("early", earlyLane(pool)),
		beside("faults", faultsLane(pool)), beside("failures", failuresLane(pool)), rounds, beside("late", lateLane(pool)),
		beside("chaos", chaosLane(pool)), beside("pods", podsLane(pool)),
	}
	if len(args) == 0 {
		var err error
		rounds.steps, err = roundAt(now, pool)
		for _, l := range inTurn {
			l.until = now.Add(limit)
		}
		at := turn.Index(now, len(inTurn))
		return slices.Concat(always, inTurn[at:], inTurn[:at]), err
	}
	rounds.steps = slices.Concat(steps(roundsOf(pool))...)
	var known []string
	for _, l := range slices.Concat(always, inTurn) {
		if len(args) == 2 && l.name == args[1] {
			return []*lane{l}, nil
		}
		known = append(known, l.name)
	}
	return nil, fmt.Errorf("there is no lane %q; name one of %s", strings.Join(args[1:], " "), strings.Join(known, ", "))
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
