package main

import (
	"context"
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

	failed []string
	// left are the steps that were not run.
	left []step
	// ended says that the lane came to its end.
	ended bool
}

// run runs the steps in turn. What fails is noted, and the next step follows, unless it
// needs the one that failed.
func (l *lane) run(ctx context.Context) {
	steps := l.steps
	if l.before != nil {
		steps = append(l.before(), steps...)
	}
	l.left = steps
	for ctx.Err() == nil && len(l.left) > 0 {
		next := l.left[0]
		l.left = l.left[1:]
		if !l.pass(ctx, next) && next.vital {
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

// pass runs a step and notes what fails.
func (l *lane) pass(ctx context.Context, s step) bool {
	tests, err := l.do(ctx, s)
	if err != nil {
		l.failed = append(append(l.failed, fmt.Sprintf("%s: %v", s.name, err)), tests...)
	}
	return err == nil
}

// failures is what failed, a line each. A lane that did not come to its end has failed.
func (l *lane) failures() []string {
	if l.ended {
		return l.failed
	}
	line := "it ended early"
	if len(l.left) > 0 {
		var names []string
		for _, s := range l.left {
			names = append(names, s.name)
		}
		line += "; not run: " + strings.Join(names, "; ")
	}
	return append(slices.Clip(l.failed), line)
}

// do runs a command to its end. When ctx ends, the command and all that it started in
// its process group get SIGTERM, and SIGKILL soon after. It returns the failed tests.
func (l *lane) do(ctx context.Context, s step) ([]string, error) {
	// The kernel ties the child's death signal to this thread (prctl(2)).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
	cmd.Env = slices.Concat(os.Environ(), l.env, s.env)
	tests := &failedTests{}
	out, errs := &lines{to: l.out, prefix: l.prefix, see: tests.see}, &lines{to: l.errs, prefix: l.prefix}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		// What has not ended by now never will.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		err = fmt.Errorf("interrupted (%w)", err)
	}
	out.flush()
	errs.flush()
	return tests.kept, err
}
