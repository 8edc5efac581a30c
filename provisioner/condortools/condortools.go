// Package condortools runs HTCondor's own tools, whose authentication is that of
// the site's configuration.
package condortools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Timeout is how long a tool may take. A schedd that does not answer must not
// keep the others' jobs waiting.
const Timeout = 60 * time.Second

// maxWords is how much of what a tool says on standard error is kept.
const maxWords = 4 << 10

// Run runs a tool and lets read read its standard output while it runs. If read
// fails, the tool is killed. The error says what the tool wrote to standard error.
func Run(ctx context.Context, read func(io.Reader) error, tool string, args ...string) error {
	return RunWith(ctx, nil, read, tool, args...)
}

// RunWith is Run with a standard input; nil is an empty one.
func RunWith(ctx context.Context, in io.Reader, read func(io.Reader) error, tool string, args ...string) error {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	// A tool may be a script, whose children are killed with it. One that left the
	// group may still keep the pipes open.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if errors.Is(syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL), syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return nil
	}
	cmd.WaitDelay = time.Second
	cmd.Stdin = in
	words := &head{}
	cmd.Stderr = words
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("running %s: %w", tool, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("running %s, which must be in the image with HTCondor's configuration: %w", tool, err)
	}
	readErr := read(out)
	if readErr != nil {
		cancel()
	}
	// The tool must not be kept waiting for a reader: Wait closes the pipe only when
	// the tool has ended.
	_, _ = io.Copy(io.Discard, io.LimitReader(out, 1<<20))
	_ = out.Close()
	err = cmd.Wait()
	switch {
	case readErr != nil:
		return fmt.Errorf("reading what %s prints: %w", tool, readErr)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("running %s %s: it has not ended after %s%s", tool, strings.Join(args, " "), time.Since(begin).Round(time.Second), words)
	case err != nil:
		return fmt.Errorf("running %s %s: %w%s", tool, strings.Join(args, " "), err, words)
	}
	return nil
}

// head keeps the beginning of what is written.
type head struct{ text []byte }

func (h *head) Write(p []byte) (int, error) {
	h.text = append(h.text, p[:min(maxWords-len(h.text), len(p))]...)
	return len(p), nil
}

// String returns the words in the form in which an error ends with them.
func (h *head) String() string {
	text := strings.Join(strings.Fields(string(h.text)), " ")
	if text == "" {
		return ""
	}
	return ": " + text
}
