package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A step is a command of a lane.
type step struct {
	// name is how reports call it.
	name string
	argv []string
	env  []string
	// vital says that the steps behind this one need it.
	vital bool
	// unable is the exit code by which the command says that this machine cannot do it; none if zero.
	unable int
}

// A lane is a series of steps that share a pool.
type lane struct {
	name  string
	steps []step
	// before and after give the steps that remove what an earlier run has left, and
	// what this one leaves.
	before, after func() []step
	env           []string
	out, errs     io.Writer
	// prefix is put before each line of output.
	prefix string
	// subject is what no other lane tests.
	subject string
	// until is when the last step may begin, if that is bounded.
	until time.Time

	took   []timed
	failed []string
	// leftOut says why this machine cannot run the lane, if it cannot.
	leftOut string
	// left are the steps that were not run, and late those of them that could not begin in time.
	left, late []step
	// ended says that the lane came to its end.
	ended bool
}

// timed is how long a step took.
type timed struct {
	name string
	time.Duration
}

// run runs the steps in turn. What fails is noted, and the next step follows, unless it
// needs the one that failed. A step of which the machine is not capable ends the lane, too,
// and that is no failure.
func (l *lane) run(ctx context.Context) {
	if l.isLate() {
		l.late, l.ended = l.steps, true
		return
	}
	steps := l.steps
	if l.before != nil {
		steps = append(l.before(), steps...)
	}
	l.left = steps
	for ctx.Err() == nil && len(l.left) > 0 {
		if l.isLate() {
			l.late, l.left = l.left, nil
			break
		}
		next := l.left[0]
		l.left = l.left[1:]
		passed := l.pass(ctx, next)
		if l.leftOut != "" {
			l.left = nil
		} else if !passed && next.vital {
			break
		}
	}
	l.ended = len(l.left) == 0 && ctx.Err() == nil
	if l.after == nil {
		return
	}
	// Also when the run was interrupted: nothing stays behind.
	for _, s := range l.after() {
		if !l.pass(context.WithoutCancel(ctx), s) {
			break
		}
	}
}

func (l *lane) isLate() bool { return !l.until.IsZero() && time.Now().After(l.until) }

// pass runs a step, and notes what fails and how long it took.
func (l *lane) pass(ctx context.Context, s step) bool {
	began := time.Now()
	seen, err := l.do(ctx, s)
	took := timed{s.name, time.Since(began).Round(time.Second)}
	l.took = append(l.took, took)
	exit, ok := errors.AsType[*exec.ExitError](err)
	result := "passed"
	switch {
	case err == nil:
	case ok && exit.ExitCode() == s.unable:
		l.leftOut = cmp.Or(seen.last, s.name+": "+err.Error())
		result = "not possible"
	default:
		l.failed = append(append(l.failed, fmt.Sprintf("%s: %v", s.name, err)), seen.failed...)
		result = err.Error()
	}
	fmt.Fprintf(l.out, "%s%s lane, after %v: %s: %s\n", l.prefix, l.name, took.Duration, s.name, result)
	return err == nil
}

// failures is what failed, a line each. A lane that did not come to its end has failed.
func (l *lane) failures() []string {
	if l.ended {
		return l.failed
	}
	line := "it ended early"
	if len(l.left) > 0 {
		line += "; not run: " + stepNames(l.left)
	}
	return append(slices.Clip(l.failed), line)
}

// stepNames are the names of steps, in their order.
func stepNames(steps []step) string {
	var names []string
	for _, s := range steps {
		names = append(names, s.name)
	}
	return strings.Join(names, "; ")
}

// printTimes lists the steps with their times.
func (l *lane) printTimes(w io.Writer) {
	if len(l.took) == 0 {
		return
	}
	var all time.Duration
	for _, t := range l.took {
		all += t.Duration
	}
	fmt.Fprintf(w, "%s lane, %v in all:\n", l.name, all)
	for _, t := range l.took {
		fmt.Fprintf(w, "%8v  %s\n", t.Duration, t.name)
	}
}

// seen is what is kept of a command's output.
type seen struct {
	// failed are the failed tests.
	failed []string
	// last is the last line of the errors.
	last string
}

// do runs a command to its end. When ctx ends, the command and all that it started in
// its process group get SIGTERM, and SIGKILL soon after.
func (l *lane) do(ctx context.Context, s step) (kept seen, err error) {
	// The kernel ties the child's death signal to this thread (prctl(2)).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
	cmd.Env = slices.Concat(os.Environ(), l.env, s.env)
	tests := &failedTests{}
	out := &lines{to: l.out, prefix: l.prefix, see: tests.see}
	errs := &lines{to: l.errs, prefix: l.prefix, see: func(line string) {
		if line = strings.TrimSpace(line); line != "" {
			kept.last = line[:min(len(line), maxLine)]
		}
	}}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	err = cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		// What has not ended by now never will.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		err = fmt.Errorf("interrupted (%w)", err)
	}
	out.flush()
	errs.flush()
	kept.failed = tests.kept
	return kept, err
}
