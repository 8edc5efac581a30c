//go:build pool

package gpus

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/deviceplugin"
	"podstarter/integration/harness"
)

// patience is how long everything may take. It is long, since a test that passes never uses it up.
const patience = 3 * time.Minute

var pool *harness.Pool

func TestMain(m *testing.M) {
	os.Exit(func() int {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var err error
		if pool, err = harness.Open(ctx); err == nil && (pool.GPUs < 2 || pool.Slots == pool.GPUs) {
			err = fmt.Errorf("the pool has %d payload containers with GPUs among %d; bring it up with --slots 3 --gpus 2", pool.GPUs, pool.Slots)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// look says what the job sees of GPUs, and then waits to be killed.
const look = `#!/bin/sh
env | grep -e GPU -e CUDA -e NVIDIA
for node in /dev/nvidia*; do [ ! -c $node ] || echo "node=$node"; done
for node in /dev/nvidia*; do [ ! -c $node ] || : <$node || echo "denied=$node"; done
grep '^AssignedGPUs = ' .machine.ad
echo image=$(cat /image-name)
echo end
exec sleep 1000
`

// seen are the lines that a job has printed, by what is before the sign.
type seen map[string][]string

func (s seen) one(name string) string { return strings.Join(s[name], " ") }

// withoutGPU is a slot that leaves GPUs to others.
const withoutGPU = "TARGET.PartitionableSlot =?= true || TARGET.TotalSlotGPUs == 0"

func submit(t *testing.T, side harness.Side, count int, requirements string, commands ...string) []harness.Job {
	t.Helper()
	jobs, err := pool.Submit(t.Context(), harness.Submission{Name: strings.ToLower(t.Name()), Side: side, Count: count, Requirements: requirements,
		Files: []harness.File{{Name: "look", Mode: 0o755, Content: []byte(look)}},
		Commands: "executable = look\nshould_transfer_files = YES\noutput = out.$(ProcId)\nerror = err.$(ProcId)\n" +
			"request_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n" + strings.Join(commands, "\n") + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if t.Failed() {
			for _, job := range jobs {
				t.Log(job.Describe())
			}
		}
		_, _ = pool.AP(ctx, "condor_rm", fmt.Sprint(jobs[0].Cluster))
	})
	return jobs
}

func started(t *testing.T, job harness.Job) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := job.WaitEvent(ctx, harness.EventExecute, 1); err != nil {
		t.Fatal(err)
	}
}

// all lets jobs of one side run at once, then ends them, and says what each has seen.
func all(t *testing.T, side harness.Side, jobs []harness.Job) []seen {
	t.Helper()
	for _, job := range jobs {
		started(t, job)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// They wait only when they have looked.
	waiting, err := harness.WaitSome(ctx, len(jobs), func(p harness.Process) bool {
		return p.Comm == "sleep" && slices.Contains(p.Args, "1000") && (pool.Payloads(side, pool.PayloadUsers())(p) || side.IsStock())
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range waiting {
		if err := harness.Kill(p, 15); err != nil {
			t.Fatal(err)
		}
	}
	var found []seen
	for _, job := range jobs {
		if _, err := job.WaitEnding(ctx); err != nil {
			t.Fatal(err)
		}
		text, err := job.Output(fmt.Sprintf("out.%d", job.Proc))
		if err != nil || !strings.HasSuffix(text, "end\n") {
			t.Fatalf("job %s printed %q, %v", job.ID(), text, err)
		}
		s := seen{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			s[strings.TrimSpace(name)] = append(s[strings.TrimSpace(name)], strings.Trim(strings.TrimSpace(value), `"`))
		}
		found = append(found, s)
	}
	return found
}

// device is the number of a device in the plugin, by the beginning of its identity.
func device(t *testing.T, id string) int {
	t.Helper()
	for i := range deviceplugin.Max {
		if id != "" && strings.HasPrefix(deviceplugin.UUID(i), id) {
			return i
		}
	}
	t.Fatalf("%q is no device of the plugin", id)
	return 0
}

// TestEachJobHasItsOwn: jobs with a GPU and one without run at once, in images of their own. Each
// sees the device node of its slot's GPU, no other, and variables that name it.
func TestEachJobHasItsOwn(t *testing.T) {
	for round := range 2 { // again in containers that have run a job
		var jobs [2][]harness.Job
		// The first container has a GPU, and another job than that of before comes first.
		for _, gpus := range []int{1 - round, round} {
			if gpus == 1 {
				jobs[0] = submit(t, harness.Ours, 2, "true", "universe = docker", "docker_image = $(IMAGE_busybox)", "request_gpus = 1")
			} else {
				jobs[1] = submit(t, harness.Ours, 1, withoutGPU, "universe = docker", "docker_image = $(IMAGE_hostile)")
				started(t, jobs[1][0])
			}
		}
		found := all(t, harness.Ours, slices.Concat(jobs[0], jobs[1]))
		var given []string
		for _, s := range found[:2] {
			id := s.one("AssignedGPUs")
			n := device(t, id)
			given = append(given, id)
			want := seen{
				"AssignedGPUs": {id}, "_CONDOR_AssignedGPUs": {id}, "GPU_DEVICE_ORDINAL": {id},
				"CUDA_VISIBLE_DEVICES": {deviceplugin.UUID(n)}, "NVIDIA_VISIBLE_DEVICES": {deviceplugin.UUID(n)},
				"node": {fmt.Sprintf("/dev/nvidia%d", n)}, "image": {"busybox"}, "end": {""},
			}
			if diff := cmp.Diff(want, s); diff != "" {
				t.Errorf("round %d: a job with a GPU sees (-want +got):\n%s", round, diff)
			}
		}
		if given[0] == given[1] {
			t.Errorf("round %d: both jobs have %s", round, given[0])
		}
		want := seen{
			"_CONDOR_AssignedGPUs": {"10000"}, "GPU_DEVICE_ORDINAL": {"10000"}, "CUDA_VISIBLE_DEVICES": {"10000"}, "NVIDIA_VISIBLE_DEVICES": {"none"},
			"image": {"hostile"}, "end": {""},
		}
		if diff := cmp.Diff(want, found[2]); diff != "" {
			t.Errorf("round %d: the job without a GPU sees (-want +got):\n%s", round, diff)
		}
	}
}

// TestNoGPULeft: jobs without a GPU fill the containers that have none, and the next one waits although containers with
// GPUs are free; one that wants a GPU does not wait.
func TestNoGPULeft(t *testing.T) {
	if !pool.Partitionable {
		t.Log("a fixed slot with a GPU takes jobs that request none, and its GPU is theirs, as with the stock starter")
		s := all(t, harness.Ours, submit(t, harness.Ours, 1, "TARGET.TotalSlotGPUs == 1"))[0]
		n := device(t, s.one("AssignedGPUs"))
		if got, want := s.one("node"), fmt.Sprintf("/dev/nvidia%d", n); got != want || s.one("_CONDOR_AssignedGPUs") != s.one("AssignedGPUs") {
			t.Errorf("the job sees %v, want node %s", s, want)
		}
		return
	}
	plain := submit(t, harness.Ours, 2, withoutGPU)
	started(t, plain[0])
	gpu := submit(t, harness.Ours, 1, "true", "request_gpus = 1")
	started(t, gpu[0])
	// The negotiator has seen both since.
	events, err := plain[1].Events()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Number == harness.EventExecute {
			t.Errorf("a job without a GPU took a container that has one: %s", harness.Headlines(events))
		}
	}
	// More than a container has: no slot offers that.
	if out, err := pool.AP(t.Context(), "condor_status", "-constraint", "PodStarterGPUsEach =?= 1 && PartitionableSlot && RequestPayloads =!= undefined", "-af", "Name"); err != nil || strings.TrimSpace(out) == "" {
		t.Errorf("the slot does not say how many GPUs a container has: %q, %v", out, err)
	}
}

// TestAsStock: under the stock starter, whose startd is told of the same GPUs, the variables of a job are the same for the same
// GPU, and of the same form for none. The stock starter of 25.14 gives the whole identity in CUDA_VISIBLE_DEVICES.
func TestAsStock(t *testing.T) {
	if !pool.HasStock() {
		t.Fatal("the pool has no stock starter; bring it up with --stock")
	}
	const inventory = "/tmp/gpus.ad"
	text, err := pool.EP(t.Context(), harness.Ours, "/opt/podstarter/bin/condor_pod_starter", "-gpus")
	if err != nil {
		t.Fatal(err)
	}
	// The pool's settings for our slots.
	slots, err := pool.EP(t.Context(), harness.Ours, "sh", "-c", "grep -e ^SLOT_TYPE_ -e ^NUM_SLOTS_TYPE_ /etc/condor/config.d/90-test.conf | grep -v PARTITIONABLE")
	if err != nil {
		t.Fatal(err)
	}
	if pool.Partitionable {
		slots = ""
	}
	configure := func(ctx context.Context, script, input string) {
		t.Helper()
		if _, err := pool.EPInput(ctx, harness.Stock, strings.NewReader(input), "sh", "-ec", script); err != nil {
			t.Fatal(err)
		}
	}
	const file = "/etc/condor/config.d/99-z-gpus.conf"
	configure(t.Context(), "cat >"+inventory, text)
	t.Cleanup(func() { configure(context.Background(), "rm -f "+file+"; condor_restart -startd", "") })
	configure(t.Context(), "cat >"+file+"; condor_restart -startd", "MACHINE_RESOURCE_INVENTORY_GPUs = /bin/cat "+inventory+"\n"+slots)

	variables := func(s seen) map[string]string {
		found := map[string]string{}
		for name := range s {
			if strings.ToUpper(name) == name || strings.HasPrefix(name, "_CONDOR_") {
				found[name] = s.one(name)
			}
		}
		return found
	}
	// By the GPU, since either slot may come first.
	look := func(side harness.Side) (with map[string]map[string]string, without map[string]string) {
		with = map[string]map[string]string{}
		jobs := submit(t, side, pool.GPUs, "true", "request_gpus = 1")
		for _, s := range all(t, side, jobs) {
			with[s.one("AssignedGPUs")] = variables(s)
		}
		return with, variables(all(t, side, submit(t, side, 1, withoutGPU))[0])
	}
	ours, none := look(harness.Ours)
	stock, stockNone := look(harness.Stock)
	if diff := cmp.Diff(stock, ours); diff != "" || len(ours) != pool.GPUs {
		t.Errorf("variables with a GPU (-stock +ours):\n%s", diff)
	}
	if diff := cmp.Diff(stockNone, none); diff != "" {
		t.Errorf("variables without (-stock +ours):\n%s", diff)
	}
}
