// Package tool runs the programs that this one needs, so that none of them outlives it.
package tool

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// A Command is a program to run to its end.
type Command struct {
	Args []string
	// Dir is the working directory; "" is the caller's.
	Dir string
	// Env are settings added to the caller's environment.
	Env []string
	// Log takes the program's output that is not returned; nil discards it.
	Log io.Writer
	// Stdin is what the program reads.
	Stdin string
}

// Run runs the command. An error holds the last lines that the program wrote to its standard error.
func Run(ctx context.Context, c Command) error {
	return run(ctx, c, c.Log)
}

// Output runs the command and returns its standard output.
func Output(ctx context.Context, c Command) (string, error) {
	var out bytes.Buffer
	err := run(ctx, c, &out)
	return out.String(), err
}

func run(ctx context.Context, c Command, stdout io.Writer) error {
	// The kernel ties the signal to the end of the thread that started the child (prctl(2)); this one must not be given to
	// other work that ends it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	if c.Stdin != "" {
		cmd.Stdin = strings.NewReader(c.Stdin)
	}
	var tail bytes.Buffer
	cmd.Stdout, cmd.Stderr = stdout, &tail
	if c.Log != nil {
		cmd.Stderr = io.MultiWriter(c.Log, &tail)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, lastLines(tail.String(), 8))
	}
	return nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
