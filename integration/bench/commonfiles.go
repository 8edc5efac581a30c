package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/measured"
)

// commonPart is run only when it is asked for: it takes a partitionable slot.
const commonPart = "common"

// What is measured: jobs of one cluster that need the same file.
const (
	commonJobs  = 20
	commonBytes = 1000 * 1000 * 1000
)

// commonRun is one cluster.
type commonRun struct {
	side   harness.Side
	common bool          // the file was declared as common
	took   time.Duration // from the first transfer to the end of the last job
	sent   int64         // bytes of files that left the access point
	disk   int64         // most that the EXECUTE directory had, KiB
}

// commonFiles measures what common input files save, under both starters.
func commonFiles(ctx context.Context, b *bencher) error {
	size := int64(commonBytes / max(*smaller, 1))
	data := filepath.Join(b.pool.User.Visible, "bench-data")
	defer os.RemoveAll(data)
	file := load{name: "common", files: 1, bytes: size, flat: true}
	if err := file.make(data); err != nil {
		return err
	}
	restore, err := b.quietLogs(ctx)
	if err != nil {
		return err
	}
	defer restore()
	path := strings.Replace(file.path(data, 0), b.pool.User.Visible, b.pool.User.Home, 1)
	var all []commonRun
	for _, r := range []commonRun{{side: harness.Stock}, {side: harness.Ours}, {side: harness.Stock, common: true}, {side: harness.Ours, common: true}} {
		err := timed(fmt.Sprintf("%d jobs, %s, common: %v", commonJobs, r.side, r.common), func() error { return b.runCommon(ctx, &r, path, size) })
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	text := commonTable(all, size, time.Now())
	if _, err := os.Stdout.WriteString(text); err != nil || *docs == "" {
		return err
	}
	return measured.Write(filepath.Join(*docs, "transfer.md"), "go -C integration run ./bench -part common", text)
}

// runCommon runs one cluster.
func (b *bencher) runCommon(ctx context.Context, r *commonRun, path string, size int64) error {
	ctx, cancel := context.WithTimeout(ctx, patienceOfTrip)
	defer cancel()
	how := "transfer_input_files"
	if r.common {
		how = "transfer_common_input"
	}
	watching, stop := context.WithCancel(ctx)
	disk := make(chan int64, 1)
	go func() { disk <- b.mostDisk(watching, r.side) }()
	jobs, err := b.pool.Submit(ctx, harness.Submission{
		Name: "common", Side: r.side, Count: commonJobs, Files: []harness.File{b.probe},
		Commands: "executable = " + harness.ProbeName + "\narguments = \"sleep=1s\"\nshould_transfer_files = YES\n" + how + " = " + path +
			fmt.Sprintf("\noutput = out.$(Process)\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = %d\n", size/1024+1024),
	})
	for _, job := range jobs {
		if err != nil {
			break
		}
		if _, err = job.WaitEnding(ctx); err != nil {
			err = fmt.Errorf("%w\n%s", err, job.Describe())
		}
	}
	stop()
	r.disk = <-disk
	if err != nil {
		return err
	}
	defer os.RemoveAll(jobs[0].Dir)
	text, err := os.ReadFile(jobs[0].Log)
	if err != nil {
		return err
	}
	events, err := harness.ParseEvents(string(text))
	if err != nil {
		return err
	}
	return r.read(events, size)
}

// received is the line of an event that says how much a job received.
var received = regexp.MustCompile(`^\s*(\d+)\s+-\s+Run Bytes Received By Job`)

// read takes the figures from the event log. The access point's own job, which stands for the common
// files, is in it, too.
func (r *commonRun) read(events []harness.Event, size int64) error {
	var first, last time.Time
	copies := int64(0)
	for _, e := range events {
		at, err := time.Parse(stampLayout, e.Stamp)
		if err != nil { // not all daemons have read the configuration anew
			at, err = time.Parse(time.DateTime, e.Stamp)
		}
		if err != nil {
			return fmt.Errorf("the time of an event: %w", err)
		}
		switch {
		case e.Number == eventCommon && strings.Contains(e.Headline, "TransferFinished"):
			copies++
		case e.Number == harness.EventTerminated:
			last = at
			for _, line := range e.Body {
				if m := received.FindStringSubmatch(line); m != nil {
					n, _ := strconv.ParseInt(m[1], 10, 64) // digits
					r.sent += n
				}
			}
		}
		if first.IsZero() && (e.Number == eventCommon || e.Number == harness.EventFileTransfer) {
			first = at
		}
	}
	if r.common && copies == 0 {
		return errors.New("no common files were transferred: the pool needs a partitionable slot (`pool up --stock --slots 4 --partitionable`)")
	}
	r.sent += copies * size
	r.took = last.Sub(first)
	return nil
}

// eventCommon is about common files (condor_event.h: ULOG_COMMON_FILES).
const eventCommon = 47

// mostDisk looks at how much is in a side's EXECUTE directory until ctx ends; a file with several names
// counts once.
func (b *bencher) mostDisk(ctx context.Context, side harness.Side) int64 {
	most := int64(0)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := b.pool.EP(ctx, side, "du", "-sk", "/var/lib/condor/execute")
		if err == nil {
			if n, err := strconv.ParseInt(strings.Fields(text + " 0")[0], 10, 64); err == nil {
				most = max(most, n)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return most
		}
	}
}

// commonTable is the result as text.
func commonTable(all []commonRun, size int64, when time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, %s: %d jobs of one cluster, each of which needs the same file of %d MB and runs for a second, on 4 slots.\n\n",
		when.UTC().Format("2006-01-02"), measured.Machine(), commonJobs, size/1000/1000)
	b.WriteString("| | starter | from the first transfer to the end of the last job, s | MB that left the access point | most in EXECUTE, MB |\n|---|---|---|---|---|\n")
	for _, r := range all {
		how := "to each job"
		if r.common {
			how = "common"
		}
		fmt.Fprintf(&b, "| %s | %s | %.1f | %d | %d |\n", how, r.side, r.took.Seconds(), r.sent/1000/1000, r.disk*1024/1000/1000)
	}
	return b.String()
}
