package batch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// maxWords is how much of what a command writes to standard error is kept, and
// what submit and cancel may print.
const maxWords = 64 << 10

var (
	errTooMuch = errors.New("it prints more than is read")
	// errNotStarted: nothing can have happened.
	errNotStarted = errors.New("it was not started")
)

// run runs a command and returns what it prints, at most so many bytes, and what
// it writes to standard error. No shell is between.
func run(ctx context.Context, within time.Duration, most int, stdin string, argv []string) (out []byte, words string, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	// Messages in one language, since the site's patterns look for them.
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	// A script's children end with it, and one that escapes does not keep the pipes.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error {
		if errors.Is(syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL), syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return nil
	}
	cmd.Cancel = kill
	cmd.WaitDelay = 5 * time.Second
	stdout := &bounded{most: most, full: cancel}
	stderr := &bounded{most: maxWords}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	what := shorten(strings.Join(argv, " "), 300)
	if err := cmd.Start(); err != nil {
		return nil, "", fmt.Errorf("running %s: %w: %w", what, errNotStarted, err)
	}
	err = cmd.Wait()
	words = string(stderr.text)
	switch {
	case stdout.over:
		err = fmt.Errorf("%w (%d bytes)", errTooMuch, most)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("it has not ended after %s", within)
	case errors.Is(err, exec.ErrWaitDelay): // it has ended well, and a child of it has the pipes
		err = nil
		_ = kill()
	}
	if err != nil {
		said := shorten(words, 1000)
		if said != "" {
			said = ": " + said
		}
		return stdout.text, words, fmt.Errorf("running %s: %w%s", what, err, said)
	}
	return stdout.text, words, nil
}

// bounded keeps the beginning of what is written.
type bounded struct {
	text []byte
	most int
	over bool
	full func() // is called once there is more, if it is set
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(b.most-len(b.text), len(p))
	b.text = append(b.text, p[:n]...)
	if n < len(p) && b.full != nil {
		b.over = true
		b.full()
	}
	return len(p), nil
}
