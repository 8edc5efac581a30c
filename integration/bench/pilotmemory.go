package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
	"podstarter/integration/measured"
)

var memorySlots = flag.String("memory-slots", "1,4,8", "numbers of slots of the pilots whose memory is measured, idle and with a job in each")

const (
	// memoryPart is the part that is run only when it is asked for: it gives the pool other numbers of slots.
	memoryPart = "memory"
	// memoryCommand is what the page names as the table's origin.
	memoryCommand = "make bench-memory"
	// memoryJob is how long the jobs run during which pilots are measured: until the last one has started, and for as long
	// again as daemons take to come to rest.
	memoryJob = 30 * time.Second
	// memoryLook is the pause between two looks.
	memoryLook = 500 * time.Millisecond
)

// footprint is the memory of a pilot container's processes in KiB, without those of jobs.
type footprint struct {
	daemons, helpers, starters int64 // pages that are of no file, and so cannot give way
	files                      int64 // pages of programs and libraries, each once; they can be read again
	pss                        int64 // proportional set size, in which other pods on the machine have their part of the same image
	charged                    int64 // what the container's control group is charged with: file cache, kernel, and processes of jobs too
}

func (f footprint) own() int64 { return f.daemons + f.helpers + f.starters }

func (f footprint) together() int64 { return f.own() + f.files }

// pilotMemory is what was measured of one pilot.
type pilotMemory struct {
	side          harness.Side
	slots         int
	idle, running footprint
	most          footprint // at the moment with the largest sum, from the submission of the jobs to their end
}

// pilotMemories measures pilots of several sizes, and restores the pool.
func pilotMemories(ctx context.Context, b *bencher) error {
	slots, err := listOf(*memorySlots, strconv.Atoi)
	if err != nil {
		return err
	}
	had := b.pool
	when, machine := time.Now(), measured.Machine()
	var all []pilotMemory
	for _, n := range slots {
		for _, side := range []harness.Side{harness.Stock, harness.Ours} {
			var m pilotMemory
			if err = timed(fmt.Sprintf("the %s pilot with %d slots", side, n), func() (err error) { m, err = b.pilotMemory(ctx, side, n); return }); err != nil {
				break
			}
			all = append(all, m)
		}
		if err != nil {
			break
		}
	}
	text := fmt.Sprintf("Measured on %s, %s.\n\n%s", when.UTC().Format("2006-01-02"), machine, memoryTable(all))
	if _, e := os.Stdout.WriteString(text); e != nil {
		err = errors.Join(err, e)
	}
	if ctx.Err() != nil {
		return err
	}
	err = errors.Join(err, b.resize(ctx, had.Slots, had.Spares, had.Partitionable))
	if err != nil || *docs == "" {
		return err
	}
	return measured.Write(filepath.Join(*docs, "turnover.md"), memoryCommand, text)
}

// pilotMemory measures one pilot with so many slots: after its daemons have started, and while each slot has a job.
func (b *bencher) pilotMemory(ctx context.Context, side harness.Side, slots int) (pilotMemory, error) {
	m := pilotMemory{side: side, slots: slots}
	if err := b.resize(ctx, slots, 0, false); err != nil {
		return m, err
	}
	// The first job makes a claim, and what the first job of a pod needs.
	if _, err := b.runs(ctx, side, "out=done", nil, 1); err != nil {
		return m, err
	}
	// Its starter has gone, and the next look of the daemons too.
	var err error
	if m.idle, err = b.restingFootprint(ctx, side, 0); err != nil {
		return m, err
	}
	jobs, err := b.submit(ctx, side, tasksOf("sleep="+memoryJob.String(), nil, slots))
	if err != nil {
		return m, err
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	most := make(chan footprint, 1)
	go func() { most <- b.mostFootprint(watched, side) }()
	if m.running, err = b.restingFootprint(ctx, side, slots); err != nil {
		return m, err
	}
	for _, job := range jobs {
		if _, err := finish(ctx, job); err != nil {
			return m, err
		}
	}
	stop()
	m.most = <-most
	return m, nil
}

// restingFootprint waits until the pilot has so many starters and its sum does not grow any more, and returns what it is then.
func (b *bencher) restingFootprint(ctx context.Context, side harness.Side, starters int) (footprint, error) {
	const same = 5 // looks with no more than a part in fifty between them
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the %s pilot does not come to rest with %d starters", side, starters))
	defer cancel()
	var first footprint
	seen := 0
	for {
		now, running, err := b.footprint(side)
		if err != nil {
			return footprint{}, err
		}
		switch {
		case running != starters:
			seen = 0
		case seen == 0 || abs(now.together()-first.together()) > first.together()/50:
			first, seen = now, 1
		default:
			if seen++; seen == same {
				return now, nil
			}
		}
		select {
		case <-ctx.Done():
			return footprint{}, context.Cause(ctx)
		case <-time.After(memoryLook):
		}
	}
}

func abs(n int64) int64 { return max(n, -n) }

// mostFootprint is the one with the largest sum until the context ends.
func (b *bencher) mostFootprint(ctx context.Context, side harness.Side) footprint {
	var most footprint
	for {
		if now, _, err := b.footprint(side); err == nil && now.together() > most.together() {
			most = now
		}
		select {
		case <-ctx.Done():
			return most
		case <-time.After(memoryLook / 5):
		}
	}
}

// footprint reads the memory of a pilot container now, and how many starters with a job it has.
func (b *bencher) footprint(side harness.Side) (footprint, int, error) {
	var f footprint
	inPod := b.pool.InPod(side)
	processes, err := harness.Processes(func(p harness.Process) bool { return inPod(p) && !b.pool.IsPayloadUID(side, p.UID) })
	if err != nil {
		return f, 0, err
	}
	var group string
	for _, p := range processes {
		if p.Comm == "condor_master" {
			if group, err = groupOf(p.PID); err != nil {
				return f, 0, err
			}
		}
	}
	if group == "" {
		return f, 0, fmt.Errorf("the pod of the %s side has no condor_master", side)
	}
	starters, files := 0, map[string]int64{}
	for _, p := range processes {
		if at, err := groupOf(p.PID); err != nil || at != group {
			continue // of another container, or gone
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", p.PID))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return f, 0, err
		}
		own, pss := mappings(string(text), files)
		f.pss += pss
		switch {
		case p.Comm != side.StarterComm():
			f.daemons += own
		case p.IsErrand():
			f.helpers += own
		default:
			f.starters += own
			starters++
		}
	}
	for _, resident := range files {
		f.files += resident
	}
	f.charged, err = chargedTo(group)
	return f, starters, err
}

// groupOf is the line of /proc/PID/cgroup about memory, without its number.
func groupOf(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	return memoryGroup(string(text))
}

// memoryGroup finds the directory of the memory control group, of version 1 or 2, in what /proc/PID/cgroup says.
func memoryGroup(text string) (string, error) {
	unified := ""
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		switch {
		case fields[1] == "memory":
			return "/sys/fs/cgroup/memory" + fields[2], nil
		case fields[0] == "0" && fields[1] == "":
			unified = "/sys/fs/cgroup" + fields[2]
		}
	}
	if unified == "" {
		return "", fmt.Errorf("no memory control group in %q", text)
	}
	return unified, nil
}

// chargedTo is what a memory control group is charged with, in KiB.
func chargedTo(group string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(group, "memory.current"))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(filepath.Join(group, "memory.usage_in_bytes"))
	}
	if err != nil {
		return 0, fmt.Errorf("reading the memory of a control group: %w", err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n >> 10, err
}

// mappings adds up what a process has by /proc/PID/smaps, in KiB: pages that are of no file, and its proportional set size.
// files gets what is resident of each part of a file, as the process that has most of it has it.
func mappings(smaps string, files map[string]int64) (own, pss int64) {
	var at string // the part of a file that the lines are about
	var resident int64
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		if len(fields) >= 5 && !strings.HasSuffix(fields[0], ":") {
			// 7f01-7f02 r-xp 00001000 fe:00 4711 /usr/lib/libc.so.6
			at = ""
			if len(fields) > 5 && fields[4] != "0" {
				begin, end, _ := strings.Cut(fields[0], "-")
				from, _ := strconv.ParseUint(begin, 16, 64)
				to, _ := strconv.ParseUint(end, 16, 64)
				at = fmt.Sprint(fields[3], fields[4], fields[2], to-from)
			}
			continue
		}
		if len(fields) < 2 {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "Rss:":
			resident = n
		case "Pss:":
			pss += n
		case "Anonymous:":
			own += n
			if at != "" {
				files[at] = max(files[at], resident-n)
			}
		}
	}
	return own, pss
}

// memoryTable is the table of the page.
func memoryTable(all []pilotMemory) string {
	var t strings.Builder
	t.WriteString("| pilot, MiB | slots | daemons | monitor, keeper | starters | files | together | PSS | charged |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, m := range all {
		for _, row := range []struct {
			name string
			footprint
		}{{"idle", m.idle}, {"a job in each slot", m.running}, {"most, from submission to end", m.most}} {
			fmt.Fprintf(&t, "| %s, %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", m.side, row.name, m.slots, mebibytes(row.daemons), mebibytes(row.helpers),
				mebibytes(row.starters), mebibytes(row.files), mebibytes(row.together()), mebibytes(row.pss), mebibytes(row.charged))
		}
	}
	return t.String()
}

func mebibytes(kib int64) string { return fmt.Sprintf("%.1f", float64(kib)/1024) }
