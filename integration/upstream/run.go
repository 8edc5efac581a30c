package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

var (
	//go:embed sandbox.sh
	sandbox string
	//go:embed outcomes.py
	plugin string
	//go:embed base.conf
	configuration string
)

// oursConfiguration puts our starter in the place of the stock one. Local universe has a knob of its own, STARTER_LOCAL, and keeps
// the stock starter.
const oursConfiguration = `
STARTER = /usr/local/sbin/condor_pod_starter
POD_STARTER_BACKEND = local
`

type result struct {
	test    test
	outcome Outcome
}

// runTest runs one file of tests. That tests fail is no error.
func runTest(ctx context.Context, o options, root string, t test) (result, error) {
	kept := filepath.Join(o.kept, t.side+"."+t.user, t.name)
	if err := os.RemoveAll(kept); err != nil {
		return result{}, fmt.Errorf("remove what an earlier run kept: %w", err)
	}
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return result{}, fmt.Errorf("make a directory for output: %w", err)
	}
	scratch, err := os.MkdirTemp("", "upstream-root")
	if err != nil {
		return result{}, fmt.Errorf("make a directory for the test's files: %w", err)
	}
	defer os.RemoveAll(scratch)
	config, starter := configuration, ""
	if t.side == ours {
		config += oursConfiguration
		starter = o.starter
	}
	conf := filepath.Join(scratch, "condor_config")
	for path, content := range map[string]string{conf: config, filepath.Join(kept, "podstarter_outcomes.py"): plugin} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return result{}, fmt.Errorf("write for the test: %w", err)
		}
	}
	output, err := os.Create(filepath.Join(kept, "output"))
	if err != nil {
		return result{}, fmt.Errorf("keep the test's output: %w", err)
	}
	defer output.Close()
	limited, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	begin := time.Now()
	policy := "--other"
	if o.idle {
		policy = "--idle"
	}
	// The kernel ends all processes of the test with unshare's child.
	cmd := exec.CommandContext(limited, "chrt", policy, "0", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--uts", "--ipc",
		"bash", "-c", sandbox, "sandbox", root, scratch, o.source, conf, kept, starter, t.user, t.name)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	ended := ""
	var exit *exec.ExitError
	switch {
	case limited.Err() != nil:
		ended = fmt.Sprintf("the test had not ended after %s", o.limit)
	case err != nil && !errors.As(err, &exit):
		return result{}, fmt.Errorf("run it: %w", err)
	case err != nil:
		ended = "the test ended with " + exit.String()
	}
	keepLogs(scratch, kept)
	if strings.HasSuffix(t.name, ".run") {
		return result{t, Outcome{Seconds: int(time.Since(begin).Seconds()), Cases: map[string]Case{"(all)": perlCase(limited.Err() != nil, ended)}}}, nil
	}
	cases, err := readCases(filepath.Join(kept, "outcomes.jsonl"), t.name, ended)
	if err != nil {
		return result{}, fmt.Errorf("%w; see %s", err, output.Name())
	}
	return result{t, Outcome{Seconds: int(time.Since(begin).Seconds()), Cases: cases}}, nil
}

// keepLogs keeps what the test wrote, for whoever looks for the reason of a failure. It is a help only.
func keepLogs(scratch, kept string) {
	for _, from := range []string{filepath.Join("home", "tester", "t"), filepath.Join("src", "test-runs")} {
		from = filepath.Join(scratch, "upper", from)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		if out, err := exec.Command("cp", "-a", from, kept).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "keeping logs: %v: %s\n", err, out)
		}
	}
}

// perlCase is the only case of a test in Perl: its program ends with 0, or it failed.
func perlCase(late bool, ended string) Case {
	switch {
	case late:
		return Case{NotRun: 1, Why: ended}
	case ended != "":
		return Case{Failed: 1, Why: ended}
	}
	return Case{Passed: 1}
}

// A line is what outcomes.py writes.
type line struct{ Case, When, Outcome, Why string }

// readCases reads what the plugin wrote. ended says how the test ended, for cases of which nothing was written.
func readCases(path, name, ended string) (map[string]Case, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("pytest did not begin: %w", err)
	}
	defer file.Close()
	cases := map[string]Case{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			break // it was killed while it wrote
		}
		key := strings.TrimPrefix(strings.TrimPrefix(l.Case, name+".py"), "::")
		if key == "" {
			key = "(collection)"
		}
		c, seen := cases[key]
		if l.When == "collect" && l.Outcome == "" {
			if !seen {
				cases[key] = Case{NotRun: 1, Why: ended}
			}
			continue
		}
		switch l.Outcome {
		case "failed":
			c = Case{Failed: 1, Why: l.When + ": " + l.Why}
		case "skipped":
			c = Case{Skipped: 1, Why: l.Why}
		case "passed":
			// Only the call is the test; a failure of its end comes after that, and counts.
			if l.When == "call" && c.Failed == 0 {
				c = Case{Passed: 1}
			}
		}
		cases[key] = c
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read what pytest reported: %w", err)
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("pytest reported no case (%s)", ended)
	}
	return cases, nil
}
