package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// downTime bounds the end of a pool.
const downTime = 3 * time.Minute

// runner runs rows, each on a pool of its own in a state directory of its own.
type runner struct {
	root string
	keep bool
	out  io.Writer
}

func (r runner) pool() string  { return filepath.Join(r.root, "integration", ".state", "bin", "pool") }
func (r runner) state() string { return filepath.Join(r.root, "integration", ".state-matrix") }

func (r runner) logs(row Row) string {
	return filepath.Join(r.root, "integration", ".state-matrix-logs", strings.ReplaceAll(row.Name(), " ", "-"))
}

// source is the commit that is run, with a mark if more was changed than what this program writes.
func (r runner) source(ctx context.Context) (string, error) {
	commit, err := r.output(ctx, "git", "describe", "--tags", "--always")
	if err != nil {
		return "", err
	}
	changes, err := r.output(ctx, "git", "status", "--porcelain", "--", ":!"+recordPath, ":!"+pagePath)
	if err != nil {
		return "", err
	}
	if changes != "" {
		return strings.TrimSpace(commit) + ", changed", nil
	}
	return strings.TrimSpace(commit), nil
}

// row runs one. The error says that nothing is known of the row: the run was interrupted, or this program failed.
func (r runner) row(ctx context.Context, row Row) (result Result, err error) {
	began := time.Now()
	result = Result{Date: began.UTC().Format(time.DateOnly)}
	if err := r.down(ctx); err != nil {
		return result, err
	}
	defer func() {
		failed := err == nil && !result.passed(row)
		if failed {
			// Without its logs a failure is a result all the same.
			if lost := r.run(ctx, r.pool(), "logs", r.logs(row)); lost != nil {
				fmt.Fprintln(r.out, lost)
			}
		}
		if failed && r.keep {
			return
		}
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTime)
		defer cancel()
		err = errors.Join(err, r.down(clean))
	}()
	defer func() { result.Seconds = int(time.Since(began).Seconds()) }()
	if err := r.run(ctx, r.pool(), row.up()...); err != nil {
		result.Down = err.Error()
		return result, ctx.Err()
	}
	if result.Node, err = r.node(ctx); err != nil {
		return result, err
	}
	for _, s := range suites {
		o, err := r.suite(ctx, row, s)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return result, err
		}
		result.Suites = append(result.Suites, o)
	}
	return result, nil
}

// down removes the pool, if there is one.
func (r runner) down(ctx context.Context) error {
	if _, err := os.Lstat(r.state()); err != nil {
		return nil
	}
	if err := r.run(ctx, r.pool(), "down"); err != nil {
		return err
	}
	if err := os.RemoveAll(r.state()); err != nil {
		return fmt.Errorf("removing the pool's state: %w", err)
	}
	return nil
}

// node asks the API server what it and the node are.
func (r runner) node(ctx context.Context) (Node, error) {
	var list struct {
		Items []struct {
			Status struct {
				NodeInfo struct{ KubeletVersion, ContainerRuntimeVersion, KernelVersion, OSImage string }
			}
		}
	}
	var version struct{ GitVersion string }
	for path, into := range map[string]any{"/api/v1/nodes": &list, "/version": &version} {
		text, err := r.output(ctx, r.pool(), "kubectl", "get", "--raw", path)
		if err == nil {
			err = json.Unmarshal([]byte(text), into)
		}
		if err != nil {
			return Node{}, fmt.Errorf("asking the API server for %s: %w", path, err)
		}
	}
	if len(list.Items) != 1 {
		return Node{}, fmt.Errorf("the cluster has %d nodes, not one", len(list.Items))
	}
	info := list.Items[0].Status.NodeInfo
	return Node{
		APIServer: version.GitVersion, Kubelet: info.KubeletVersion, Runtime: info.ContainerRuntimeVersion,
		Kernel: info.KernelVersion, System: info.OSImage,
	}, nil
}

// suite runs the tests of a package.
func (r runner) suite(ctx context.Context, row Row, s suite) (Outcome, error) {
	fmt.Fprintf(r.out, "%s %s: %s\n", time.Now().Format(time.TimeOnly), row.Name(), s.pkg)
	cmd := r.command(ctx, "go", s.arguments(row, r.pool())...)
	cmd.Stderr = r.out
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("starting the tests of %s: %w", s.pkg, err)
	}
	o, err := s.outcome(events, r.out)
	ended := cmd.Wait()
	if err != nil {
		return o, err
	}
	if ended != nil && len(o.Failed) == 0 {
		o.Failed = []string{s.pkg}
	}
	return o, nil
}

// command is one of the project that ends with ctx: in order, and by force if it does not.
func (r runner) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "PODSTARTER_STATE="+r.state())
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

func (r runner) output(ctx context.Context, name string, args ...string) (string, error) {
	var stderr strings.Builder
	cmd := r.command(ctx, name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// maxSaid bounds the words of a command that are kept for its error.
const maxSaid = 600

// run runs a command whose output is of interest to those who wait; its last words are in the error.
func (r runner) run(ctx context.Context, name string, args ...string) error {
	last := &tail{max: maxSaid}
	cmd := r.command(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = r.out, io.MultiWriter(r.out, last)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, strings.TrimSpace(string(last.text)))
	}
	return nil
}

// tail keeps the end of what is written.
type tail struct {
	max  int
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(text []byte) (int, error) {
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-t.max):]
	return len(text), nil
}
