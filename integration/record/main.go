package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// inside is where the streams go in the pilot.
const inside = "/var/log/condor/streams"

var only = flag.String("only", "", "record the jobs with these names, separated by commas, instead of all")

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
	for _, r := range jobs {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), r.name) {
			continue
		}
		if err := recordJob(ctx, pool, r); err != nil {
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
	// The harness knows starters by the first 15 bytes of this name.
	const at = "/usr/local/sbin/condor_pod_starter.record"
	if _, err := pool.EPInput(ctx, harness.Ours, f, "sh", "-c", `mkdir -p "$1" && rm -f "$1"/* && cat >"$0.new" && chmod 755 "$0.new" && mv "$0.new" "$0"`, at, inside); err != nil {
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
func recordJob(ctx context.Context, pool *harness.Pool, r recorded) error {
	dir := filepath.Join(pool.State, "log", "glidein", "streams")
	before, err := starters(dir)
	if err != nil {
		return err
	}
	job, err := pool.SubmitOne(ctx, harness.Submission{
		Name: r.name, Side: harness.Ours, Files: r.files,
		Commands: "should_transfer_files = YES\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\njob_max_vacate_time = 2\n" +
			strings.ReplaceAll(r.submit, "$PROBE", pool.Image("probe")),
	})
	if err != nil {
		return err
	}
	if r.steer != nil {
		if _, err := job.WaitEvent(ctx, harness.EventExecute, 1); err != nil {
			return err
		}
		// The first update has the process number. Orders follow it.
		if _, err := job.WaitEvent(ctx, harness.EventImageSize, 1); err != nil {
			return err
		}
		if err := r.steer(ctx, pool, job); err != nil {
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
	fmt.Printf("%s: %s, %d runs\n", r.name, end, ad.IntOr("NumJobStarts", 0))
	// Record its last words too.
	if err := harness.WaitNone(ctx, pool.Starters(harness.Ours)); err != nil {
		return err
	}
	now, err := starters(dir)
	if err == nil && len(now) <= len(before) {
		err = fmt.Errorf("no starter has left streams in %s", dir)
	}
	if err != nil {
		return err
	}
	versions := pool.Versions.EP
	if pool.Versions.AP != versions {
		versions = pool.Versions.String()
	}
	return copyStreams(dir, now[len(before)], filepath.Join(pool.Root, "testdata", "streams", versions, r.name))
}

// starters are the process numbers of the starters that have written streams, in
// the order in which they began.
func starters(dir string) ([]int, error) {
	const mark = "-CONDOR_INHERIT.txt"
	paths, err := filepath.Glob(filepath.Join(dir, "*"+mark))
	if err != nil {
		return nil, err
	}
	began := map[int]time.Time{}
	var all []int
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		pid, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), mark))
		if err != nil {
			return nil, err
		}
		began[pid] = info.ModTime()
		all = append(all, pid)
	}
	slices.SortFunc(all, func(a, b int) int { return began[a].Compare(began[b]) })
	return all, nil
}
