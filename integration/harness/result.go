package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Result is the result of a command that may fail.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// TryAP runs a command as the pool's user on the submit side. It returns an error
// if the command could not be run; an exit code is no error.
func (p *Pool) TryAP(ctx context.Context, argv ...string) (Result, error) {
	return p.try(ctx, nil, append(p.asUser(), argv...)...)
}

// TryEP runs a command as root in the container of an execution point's daemons. It
// returns an error if the command could not be run; an exit code is no error.
func (p *Pool) TryEP(ctx context.Context, side Side, argv ...string) (Result, error) {
	return p.try(ctx, nil, append(side.verb(), argv...)...)
}

// TryPilot is TryEP as [Pool.PilotInput] runs commands.
func (p *Pool) TryPilot(ctx context.Context, side Side, argv ...string) (Result, error) {
	return p.try(ctx, nil, append(p.pilotVerb(side), argv...)...)
}

// APRoot runs a command as root on the submit side and returns its standard
// output.
func (p *Pool) APRoot(ctx context.Context, stdin io.Reader, argv ...string) (string, error) {
	return p.run(ctx, stdin, append([]string{"ap", "--root"}, argv...)...)
}

// try executes the pool program, which passes on the exit code of the command.
func (p *Pool) try(ctx context.Context, stdin io.Reader, argv ...string) (Result, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, p.program, argv...)
	command.Dir = p.Root
	command.Stdin = stdin
	command.Stdout = &stdout
	command.Stderr = &stderr
	command.WaitDelay = 5 * time.Second // what it started in a container may keep the pipes open
	command.Cancel = func() error { return killTree(command.Process.Pid) }
	err := command.Run()
	result := Result{Stdout: stdout.String(), Stderr: stderr.String()}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		result.Code = exit.ExitCode()
		return result, nil
	}
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(err, context.Cause(ctx))
		}
		return result, fmt.Errorf("pool %s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(result.Stderr))
	}
	return result, nil
}
