package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// inside is where the streams go in the pilot, outside the same directory seen
// from this machine.
const inside = "/var/log/condor/streams"

// recorded are the jobs whose starters are recorded, with what is done to them.
var recorded = []struct {
	name, submit string
	files        []harness.File
	steer        func(context.Context, harness.Job) error
}{
	{name: "plain", submit: "arguments = out=hello file=new:1\ntransfer_input_files = in\noutput = out\nerror = err",
		files: []harness.File{{Name: "in", Content: []byte("an input\n")}}},
	{name: "vacated", submit: "arguments = resume=kept:0 trap=kept:3 ready forever\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\noutput = out",
		steer: tool("condor_vacate_job")},
	{name: "held", submit: "arguments = ready forever\noutput = out", steer: tool("condor_hold", "-reason", "to be recorded", "-subcode", "5")},
	{name: "suspended", submit: "arguments = ready sleep=3s\noutput = out", steer: func(ctx context.Context, job harness.Job) error {
		return errors.Join(tool("condor_suspend")(ctx, job), tool("condor_continue")(ctx, job))
	}},
	{name: "failed", submit: "arguments = out=hello\ntransfer_output_files = never\noutput = out"},
}

func tool(argv ...string) func(context.Context, harness.Job) error {
	return func(ctx context.Context, job harness.Job) error { return job.Tool(ctx, argv...) }
}

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, errors.New("recording took longer than five minutes"))
	defer cancel()
	if err := record(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func record(ctx context.Context) error {
	pool, err := harness.Open(ctx)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "record-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	program, err := build(ctx, pool.Root, tmp, inside)
	if err != nil {
		return err
	}
	remove, err := install(ctx, pool, program)
	if err != nil {
		return err
	}
	defer func() {
		if err := remove(); err != nil {
			fmt.Fprintln(os.Stderr, "record:", err)
		}
	}()
	probe, err := pool.Probe(ctx)
	if err != nil {
		return err
	}
	for _, r := range recorded {
		if err := recordJob(ctx, pool, r.name, harness.Submission{
			Name: "record-" + r.name, Side: harness.Ours, Files: append([]harness.File{probe}, r.files...),
			Commands: "executable = " + harness.ProbeName + "\nshould_transfer_files = YES\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n" +
				"job_max_vacate_time = 2\n" + r.submit,
		}, r.steer); err != nil {
			return fmt.Errorf("recording %s: %w", r.name, err)
		}
	}
	return nil
}

// install puts the program into the pilot and makes it the startd's starter.
func install(ctx context.Context, pool *harness.Pool, program string) (remove func() error, err error) {
	f, err := os.Open(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const at = "/usr/local/sbin/condor_recording_starter"
	if _, err := pool.EPInput(ctx, harness.Ours, f, "sh", "-c", `mkdir -p "$1" && rm -f "$1"/* && cat >"$0" && chmod 755 "$0"`, at, inside); err != nil {
		return nil, fmt.Errorf("installing the starter that records: %w", err)
	}
	const file = "/etc/condor/config.d/98-record.conf"
	set := func(ctx context.Context, script string) error {
		_, err := pool.EP(ctx, harness.Ours, "sh", "-c", script, file, at)
		return err
	}
	if err := set(ctx, `echo "STARTER = $1" >"$0" && condor_reconfig`); err != nil {
		return nil, fmt.Errorf("making it the startd's starter: %w", err)
	}
	err = harness.Poll(ctx, "the startd to know its new starter", func() (bool, error) {
		out, err := pool.EP(ctx, harness.Ours, "condor_config_val", "-startd", "STARTER")
		return err == nil && strings.TrimSpace(out) == at, nil
	})
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return set(ctx, `rm -f "$0" "$1" && condor_reconfig`)
	}, err
}

// recordJob runs a job and writes the streams of its first starter.
func recordJob(ctx context.Context, pool *harness.Pool, name string, s harness.Submission, steer func(context.Context, harness.Job) error) error {
	job, err := pool.SubmitOne(ctx, s)
	if err != nil {
		return err
	}
	if steer != nil {
		if _, err := job.WaitEvent(ctx, harness.EventExecute, 1); err != nil {
			return err
		}
		// The first update has the process number: what comes after it is steered.
		if _, err := job.WaitEvent(ctx, harness.EventImageSize, 1); err != nil {
			return err
		}
		if err := steer(ctx, job); err != nil {
			return err
		}
	}
	end, err := job.WaitEnding(ctx)
	if err != nil {
		return err
	}
	if end.Held {
		if err := job.Tool(ctx, "condor_rm"); err != nil {
			return err
		}
	}
	ad, err := job.History(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s, %d runs\n", name, end, ad.IntOr("NumJobStarts", 0))
	logs := filepath.Join(pool.State, "log", "glidein")
	pid, err := firstStarter(ctx, logs, job)
	if err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(logs, "streams", strconv.Itoa(pid)+"-*.jsonl"))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("starter %d left no streams (%v)", pid, err)
	}
	versions := pool.Versions.EP
	if pool.Versions.AP != versions {
		versions = pool.Versions.String()
	}
	dir := filepath.Join(pool.Root, "testdata", "streams", versions, name)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	for _, path := range paths {
		_, rest, _ := strings.Cut(filepath.Base(path), "-")
		if err := copyRedacted(path, filepath.Join(dir, rest)); err != nil {
			return err
		}
	}
	return nil
}

// firstStarter is the process number, in the pod, of the starter that ran the
// job first.
func firstStarter(ctx context.Context, logs string, job harness.Job) (int, error) {
	found := 0
	err := harness.Poll(ctx, "the log of the job's starter", func() (bool, error) {
		paths, err := filepath.Glob(filepath.Join(logs, "StarterLog.slot*"))
		if err != nil {
			return false, err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return false, err
			}
			runs, err := harness.ParseStarterLog(string(text))
			if err != nil {
				return false, err
			}
			// Numbers of jobs begin anew with a pool, logs do not: the last one counts,
			// or the one before it if the job ran twice.
			mine := harness.RunsOf(runs, job.ID())
			for _, run := range mine {
				if !run.Ended.IsZero() && time.Since(run.Ended) < 24*time.Hour {
					found = run.PID
				}
			}
		}
		return found != 0, nil
	})
	return found, err
}

// copyRedacted copies a stream without its secrets.
func copyRedacted(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	var out strings.Builder
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var packet struct {
			Way  string
			Last bool
			Data string
		}
		if err := json.Unmarshal(lines.Bytes(), &packet); err != nil {
			return fmt.Errorf("reading %s: %w", from, err)
		}
		payload := make([]byte, 0, len(packet.Data))
		for _, r := range packet.Data {
			payload = append(payload, byte(r))
		}
		text := make([]rune, 0, len(payload))
		for _, b := range redact(payload) {
			text = append(text, rune(b))
		}
		packet.Data = string(text)
		line, err := json.Marshal(packet)
		if err != nil {
			return err
		}
		out.Write(append(line, '\n'))
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", from, err)
	}
	return os.WriteFile(to, []byte(out.String()), 0o644)
}
