package nodes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A site is a running pool of several nodes as its administrator and its users have it: through the pool program.
type site struct{ program string }

// find returns the pool of this checkout.
func find() (site, error) {
	state := os.Getenv("PODSTARTER_STATE")
	if state == "" {
		var err error
		if state, err = filepath.Abs("../.state"); err != nil {
			return site{}, err
		}
	}
	return site{filepath.Join(state, "bin", "pool")}, nil
}

// run runs a verb of the pool program and returns what it prints.
func (s site) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("pool %s: %w\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String(), nil
}

// ap runs a command as the user who submits jobs.
func (s site) ap(ctx context.Context, stdin string, args ...string) (string, error) {
	return s.run(ctx, stdin, append([]string{"ap"}, args...)...)
}
