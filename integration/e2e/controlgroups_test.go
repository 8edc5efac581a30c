//go:build pool

package e2e

import (
	"bytes"
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

//go:embed testdata/controlgroups.sh
var controlGroups string

// polled has 64 MiB in shared memory, when its first update is over and before it ends.
const polled = `#!/bin/sh
sleep 4
head -c 64M /dev/zero >/dev/shm/polled
sleep 4
rm /dev/shm/polled
sleep 1
`

// Steps of the probe: memory of its own and as much page cache and half as much again; and a job that has been looked at before memory runs out.
const (
	usageSteps = "memory=64 disk=big:96 sleep=8s"
	leapSteps  = "memory=48 sleep=5s eat=leap"
)

// memoryCase is a job that runs under both starters. Sizes are in MiB.
type memoryCase struct {
	name, knobs            string
	steps                  string // of the probe; none is polled
	grows                  bool   // it uses more than there is
	full                   bool   // its machine, or its pod, has less than its slot
	leastRSS, mostRSS      int    // 0 and 0: not looked at
	leastImage, mostImage  int
	stockReturns, returned bool // it goes back to the queue: under stock, and under ours; else it is held
}

var memoryCases = []memoryCase{
	{name: "usage", steps: usageSteps, leastRSS: 60, mostRSS: 90, leastImage: 60, mostImage: 90},
	{name: "peak", knobs: "CGROUP_USE_PEAK_MEMORY = True", steps: usageSteps, leastRSS: 60, mostRSS: 100, leastImage: 60, mostImage: 100},
	{name: "cache", knobs: "CGROUP_USE_PEAK_MEMORY = True\nCGROUP_IGNORE_CACHE_MEMORY = False", steps: usageSteps, leastRSS: 60, mostRSS: 90, leastImage: 150, mostImage: 256},
	{name: "often", knobs: "CGROUP_POLLING_INTERVAL = 1", leastImage: 60, mostImage: 90},
	{name: "seldom", knobs: "CGROUP_POLLING_INTERVAL = 600", leastImage: 0, mostImage: 40},
	{name: "held", knobs: "STARTER_ALWAYS_HOLD_ON_OOM = True", steps: leapSteps, grows: true},
	// The stock starter goes by its last look. This one knows from the kernel whose limit it was.
	{name: "returned", knobs: "STARTER_ALWAYS_HOLD_ON_OOM = False", steps: leapSteps, grows: true, stockReturns: true},
	{name: "full", knobs: "STARTER_ALWAYS_HOLD_ON_OOM = True", steps: leapSteps, grows: true, full: true},
	{name: "filled", knobs: "STARTER_ALWAYS_HOLD_ON_OOM = False", steps: leapSteps, grows: true, full: true, stockReturns: true, returned: true},
}

// TestControlGroups: with version 2 of control groups, what is reported of a job's memory follows the same knobs as under the stock starter, which
// has a control group for each job on a machine of its own; and so does what becomes of a job when memory runs out.
func TestControlGroups(t *testing.T) {
	oursOnly(t)
	var fs unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &fs); err != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		t.Fatal("this machine has no version 2 of control groups, as a guest has (pool up --guest)")
	}
	var stock map[string]string
	ended := make(chan error, 1)
	go func() { // both mostly wait
		var err error
		stock, err = memoryOnMachine(t.Context(), "/usr/sbin/condor_starter")
		ended <- err
	}()
	for _, c := range memoryCases {
		t.Run("ours "+c.name, func(t *testing.T) { c.ours(t) })
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for _, c := range memoryCases {
		t.Run("stock "+c.name, func(t *testing.T) { c.stock(t, stock[c.name]) })
	}
	if t.Failed() {
		t.Log(stock["log"])
	}
}

// memoryOnMachine runs the cases under a starter on a machine of its own.
func memoryOnMachine(ctx context.Context, starter string) (map[string]string, error) {
	program := probe.Content
	if probe.Link != "" {
		var err error
		if program, err = os.ReadFile(probe.Link); err != nil {
			return nil, err
		}
	}
	const there = "/var/tmp/e2e-probe"
	if _, err := pool.EPInput(ctx, harness.Ours, bytes.NewReader(program), "sh", "-c", `cat >"$1" && chmod 755 "$1"`, "sh", there); err != nil {
		return nil, err
	}
	return onMachine(ctx, controlGroups, starter, there, polled)
}

// TestControlGroupsWithoutPod: on a machine of its own, where the stock starter makes a control group for each job, so does this one. Limit, figures, and
// what becomes of a job that uses too much, are those of the stock starter; no group stays.
func TestControlGroupsWithoutPod(t *testing.T) {
	oursOnly(t)
	starter, err := pool.Config(t.Context(), side, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := memoryOnMachine(t.Context(), starter)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range memoryCases {
		t.Run(c.name, func(t *testing.T) { c.plain(t, ours[c.name]) })
	}
	if ours["left"] != "" {
		t.Errorf("control groups are left:\n%s", ours["left"])
	}
	if t.Failed() {
		t.Log(ours["log"])
	}
}

// plain looks at what our starter made of it on a machine of its own.
func (c memoryCase) plain(t *testing.T, printed string) {
	t.Log(printed)
	words, code := strings.TrimSuffix(overLimit, "  Consider resubmitting with a higher request_memory."), "\tCode 34 Subcode 102\n"
	switch {
	case c.returned:
		if !strings.Contains(printed, nodeFull) || strings.Contains(printed, "012 (") {
			t.Errorf("it did not go back to the queue:\n%s", printed)
		}
	case c.full:
		if !strings.Contains(printed, "its pod or its machine ran out of memory") || !strings.Contains(printed, code) {
			t.Errorf("it was not held:\n%s", printed)
		}
	case c.grows:
		if !strings.Contains(printed, words) || !strings.Contains(printed, code) {
			t.Errorf("it was not held:\n%s", printed)
		}
	default:
		if !strings.Contains(printed, "(return value 0)") {
			t.Errorf("it failed:\n%s", printed)
		}
		c.sizes(t, figure(t, printed, "ResidentSetSize_RAW"), figure(t, printed, "ImageSize_RAW"))
	}
}

const (
	overLimit = "Job has gone over cgroup memory limit of 256 megabytes. Last measured usage: 256 megabytes.  Consider resubmitting with a higher request_memory."
	nodeFull  = "Worker node is out of memory"
)

// stock looks at what the stock starter made of it.
func (c memoryCase) stock(t *testing.T, printed string) {
	switch {
	case c.stockReturns:
		if !strings.Contains(printed, nodeFull) || strings.Contains(printed, "012 (") {
			t.Errorf("it did not go back to the queue:\n%s", printed)
		}
	case c.grows: // whoever was short of memory, it says that the job went over its own limit
		if !strings.Contains(printed, overLimit+"\n\tCode 34 Subcode 102\n") {
			t.Errorf("it was not held:\n%s", printed)
		}
	default:
		if !strings.Contains(printed, "(return value 0)") {
			t.Errorf("it failed:\n%s", printed)
		}
		c.sizes(t, figure(t, printed, "ResidentSetSize_RAW"), figure(t, printed, "ImageSize_RAW"))
	}
}

// sizes are those in KiB that a starter reported.
func (c memoryCase) sizes(t *testing.T, resident, image int) {
	t.Logf("ResidentSetSize %d MiB, ImageSize %d MiB", resident>>10, image>>10)
	if c.mostRSS > 0 && (resident>>10 < c.leastRSS || resident>>10 > c.mostRSS) {
		t.Errorf("ResidentSetSize is %d MiB, want %d to %d", resident>>10, c.leastRSS, c.mostRSS)
	}
	if image>>10 < c.leastImage || image>>10 > c.mostImage {
		t.Errorf("ImageSize is %d MiB, want %d to %d", image>>10, c.leastImage, c.mostImage)
	}
}

// ours runs the case in the pod.
func (c memoryCase) ours(t *testing.T) {
	configure(t, append(strings.Split(c.knobs, "\n"), "STARTER_INITIAL_UPDATE_INTERVAL = 2", "STARTER_UPDATE_INTERVAL = 600")...)
	begin := "exec ./probe " + c.steps + "\n"
	if c.steps == "" {
		begin = polled
	}
	comm := "before-" + c.name
	submitted := submit(t, harness.Submission{
		Files: []harness.File{probe, {Name: "main", Mode: 0o755, Content: []byte("#!/bin/sh\ntrap go=1 USR1\nprintf %s " + comm +
			" >/proc/$$/comm\nwhile [ -z \"$go\" ]; do sleep 0.1; done\n" + begin)}},
		Commands: "executable = main\ntransfer_input_files = " + harness.ProbeName + "\ntransfer_output_files =\nshould_transfer_files = YES\noutput = out\nrequest_memory = 64\nrequest_disk = 128M",
	})[0]
	running(t, submitted, 1)
	of := payload()
	main, err := harness.WaitSome(soon(t, patience), 1, func(p harness.Process) bool { return p.Comm == comm && of(p) })
	if err != nil {
		t.Fatal(err)
	}
	if c.grows {
		limitMemory(t, main[0].PID, 256<<20)
	}
	if c.full {
		limitPod(t, main[0].PID, 128<<20)
	}
	if err := harness.Kill(main[0], unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	switch {
	case c.returned:
		if _, err := submitted.WaitEvent(soon(t, patience), harness.EventEvicted, 1); err != nil {
			t.Fatal(err)
		}
		events, err := submitted.Events()
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(events, func(e harness.Event) bool { return e.Number == harness.EventEvicted })
		if !strings.Contains(events[at].Text(), nodeFull) {
			t.Errorf("it went back to the queue with %q", events[at].Text())
		}
	case c.grows:
		words := strings.TrimSuffix(overLimit, "  Consider resubmitting with a higher request_memory.")
		if c.full {
			words = "its pod or its machine ran out of memory"
		}
		if end := ending(t, submitted); !end.Held || end.Code != holdJobOutOfResources || end.Subcode != subcodeMemory || !strings.Contains(end.Reason, words) {
			t.Errorf("%s; want held with code %d, subcode %d: %s", end, holdJobOutOfResources, subcodeMemory, words)
		}
	default:
		mustExit(t, submitted, 0)
		ad, err := submitted.History(soon(t, patience))
		if err != nil {
			t.Fatal(err)
		}
		c.sizes(t, int(ad.IntOr("ResidentSetSize_RAW", -1)), int(ad.IntOr("ImageSize_RAW", -1)))
	}
}

// limitPod leaves the pod of a process so much memory beyond what it uses now, until the test ends.
func limitPod(t *testing.T, pid int, more int64) {
	t.Helper()
	group := filepath.Dir(filepath.Dir(memoryFile(t, pid)))
	text, err := os.ReadFile(filepath.Join(group, "memory.stat"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && slices.Contains([]string{"anon", "shmem", "kernel"}, key) {
			more += n
		}
	}
	limit := filepath.Join(group, "memory.max")
	before, err := os.ReadFile(limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := writeGroup(limit, strings.TrimSpace(string(before))); err != nil {
			t.Error(err)
		}
	})
	if err := writeGroup(limit, strconv.FormatInt(more, 10)); err != nil {
		t.Fatal(err)
	}
}
