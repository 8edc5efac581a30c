package supply

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"podstarter/provisioner/resources"
)

// noWhole leaves out what TestWhole is about.
var noWhole = cmpopts.IgnoreFields(Pod{}, "Whole")

func TestRead(t *testing.T) {
	pods, err := Read(strings.NewReader(`Name = "slot1@p-1"
SlotType = "Partitionable"
PartitionableSlot = true
State = "Unclaimed"
Cpus = 2
Memory = 4096
Disk = 1000

Name = "slot1_1@p-1"
SlotType = "Dynamic"
State = "Claimed"
Cpus = 2
Memory = 1024
Disk = 10
GPUs = 1

Name = "slot1@p-2"
SlotType = "Static"
State = "Drained"

Name = "slot1@p-3"
State = "Unclaimed"
Offline = true
Cpus = 64

Name = "slot1@p-4"
PartitionableSlot = true
State = "Claimed"
Cpus = 1
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*Pod{
		"p-1": {Slot: "slot1@p-1", Free: resources.Amount{CPUs: 2, Memory: 4096, Disk: 1000, Payloads: 1 << 40}, Claims: []Claim{{Amount: resources.Amount{CPUs: 2, Memory: 1024, Disk: 10, GPUs: 1, Payloads: 1}}}},
		"p-2": {Slot: "slot1@p-2", Draining: true},
		"p-4": {Slot: "slot1@p-4", Free: resources.Amount{CPUs: 1, Payloads: 1 << 40}},
	}
	if diff := cmp.Diff(want, pods, noWhole); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A slot in the state Owner takes no job, whatever it has.
func TestOwner(t *testing.T) {
	pods, err := Read(strings.NewReader("Name = \"slot1@p-1\"\nState = \"Owner\"\nCpus = 4\nMemory = 4096\n\nName = \"slot2@p-1\"\nState = \"Unclaimed\"\nCpus = 1\n\nName = \"slot1@p-2\"\nState = \"Owner\"\nCpus = 4\n"))
	want := map[string]*Pod{"p-1": {Slot: "slot1@p-1", Free: resources.Amount{CPUs: 1, Payloads: 1}}, "p-2": {Slot: "slot1@p-2"}}
	if diff := cmp.Diff(want, pods, noWhole); diff != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
}

// A slot that takes no job has no room, whatever its state is: the startd shuts down
// while jobs run, the slot is broken, or podstarter keeps it from jobs for a while.
func TestSlotsThatTakeNoJob(t *testing.T) {
	pods, err := Read(strings.NewReader(`Name = "slot1@ends"
PartitionableSlot = true
State = "Unclaimed"
Cpus = 6
Payloads = 2
Requirements = false

Name = "slot1_1@ends"
SlotType = "Dynamic"
State = "Claimed"
Cpus = 1
Requirements = false

Name = "slot1@broken"
State = "Unclaimed"
Cpus = 1
Requirements = "its job left processes"

Name = "slot2@broken"
State = "Unclaimed"
Cpus = 2
Requirements = START && WithinResourceLimits

Name = "slot1@rests"
State = "Unclaimed"
Cpus = 1
PodStarterOfflineUntil = 0
PodStarterRestUntil = 1795262410
Requirements = START

Name = "slot2@rests"
State = "Unclaimed"
Cpus = 2
PodStarterOfflineUntil = 1795262420
PodStarterRestUntil = 1795262410
Requirements = true
`))
	want := map[string]*Pod{
		"ends":   {Slot: "slot1@ends", Draining: true, Claims: []Claim{{Amount: resources.Amount{CPUs: 1, Payloads: 1}}}},
		"broken": {Slot: "slot1@broken", Free: resources.Amount{CPUs: 2, Payloads: 1}},
		"rests": {Slot: "slot1@rests", Rests: []Rest{
			{resources.Amount{CPUs: 1, Payloads: 1}, time.Unix(1795262410, 0).UTC()}, {resources.Amount{CPUs: 2, Payloads: 1}, time.Unix(1795262420, 0).UTC()},
		}},
	}
	if diff := cmp.Diff(want, pods, noWhole); diff != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
}

// A partitionable slot with CPUs left and no payload container takes no job. One that does
// not count its containers says nothing of them.
func TestPayloads(t *testing.T) {
	pods, err := Read(strings.NewReader(`Name = "slot1@p"
PartitionableSlot = true
State = "Unclaimed"
Cpus = 6
Payloads = 0

Name = "slot1_1@p"
SlotType = "Dynamic"
State = "Claimed"
Cpus = 1
Payloads = 1

Name = "slot1@q"
PartitionableSlot = true
State = "Unclaimed"
Cpus = 6

Name = "slot1@r"
State = "Unclaimed"
Cpus = 1
`))
	one := resources.Amount{CPUs: 1, Payloads: 1}
	want := map[string]*Pod{
		"p": {Slot: "slot1@p", Free: resources.Amount{CPUs: 6}, Claims: []Claim{{Amount: one}}},
		"q": {Slot: "slot1@q", Free: resources.Amount{CPUs: 6, Payloads: 1 << 40}},
		"r": {Slot: "slot1@r", Free: resources.Amount{CPUs: 1, Payloads: 1}},
	}
	if diff := cmp.Diff(want, pods, noWhole); diff != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
}

// The startd completes a name without @ by that of its host.
func TestNames(t *testing.T) {
	pods, err := Read(strings.NewReader("Name = \"slot1@p-1@p-1.example.org\"\nState = \"Unclaimed\"\nCpus = 1\n\nName = \"slot1@p-2.example.org\"\nState = \"Unclaimed\"\nCpus = 2\n\nName = \"slot1@.example.org\"\nState = \"Unclaimed\"\n"))
	if err == nil || !strings.Contains(err.Error(), "it must be slot@pod") {
		t.Errorf("the error is %v", err)
	}
	want := map[string]*Pod{"p-1": {Slot: "slot1@p-1@p-1.example.org", Free: resources.Amount{CPUs: 1, Payloads: 1}}, "p-2": {Slot: "slot1@p-2.example.org", Free: resources.Amount{CPUs: 2, Payloads: 1}}}
	if diff := cmp.Diff(want, pods, noWhole); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A slot that says in which pod it is may have any name: those of the OSPool begin
// with the resource and the namespace.
func TestPodName(t *testing.T) {
	pods, err := Read(strings.NewReader("Name = \"slot1@RES-ns-site-1@h.example.org\"\nK8SPodName = \"site-1\"\nState = \"Unclaimed\"\nCpus = 1\n\nName = \"slot1@site-2\"\nK8SPodName = 7\nState = \"Unclaimed\"\nCpus = 2\n"))
	want := map[string]*Pod{"site-1": {Slot: "slot1@RES-ns-site-1@h.example.org", Free: resources.Amount{CPUs: 1, Payloads: 1}}, "site-2": {Slot: "slot1@site-2", Free: resources.Amount{CPUs: 2, Payloads: 1}}}
	if diff := cmp.Diff(want, pods, noWhole); diff != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
}

// What runs in a slot, since when, and what the startd has counted.
func TestJobs(t *testing.T) {
	pods, err := Read(strings.NewReader(`Name = "slot1@p"
State = "Unclaimed"
Cpus = 1
JobStarts = 6
JobBusyTimeCount = 4
JobBusyTimeAvg = 90.5

Name = "slot1_1@p"
SlotType = "Dynamic"
State = "Claimed"
Cpus = 1
GlobalJobId = "ap.example.org#7.0#1700000000"
JobStart = 1700000100
JobBusyTimeCount = 3
JobBusyTimeAvg = 100.0

Name = "slot1_2@p"
State = "Claimed"
Cpus = 1
GlobalJobId = "ap.example.org#7.1#1700000000"

Name = "slot1@q"
State = "Unclaimed"
JobBusyTimeCount = 2000000
JobBusyTimeAvg = 1.0E300
`))
	one := resources.Amount{CPUs: 1, Payloads: 1}
	want := map[string]*Pod{
		"p": {
			Slot: "slot1@p", Free: one, Started: 6, Ended: 4, Busy: 362 * time.Second,
			Claims: []Claim{{Amount: one, Job: "ap.example.org#7.0#1700000000", Began: time.Unix(1700000100, 0).UTC()}, {Amount: one}},
		},
		"q": {Slot: "slot1@q", Free: resources.Amount{Payloads: 1}},
	}
	if diff := cmp.Diff(want, pods, noWhole); diff != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
}

func TestBadSlots(t *testing.T) {
	pods, err := Read(strings.NewReader("Name = 5\n\nName = \"slot1@p\"\nState = \"Asleep\"\n\nName = \"slot1@\"\n\nName = )\n\nName = \"slot1@q\"\nState = \"Unclaimed\"\nCpus = 9223372036854775807\nMemory = -4\n"))
	if err == nil || strings.Count(err.Error(), "reading a slot") != 4 {
		t.Errorf("the error does not name the four that cannot be read: %v", err)
	}
	if got := pods["q"].Free; got != (resources.Amount{CPUs: 1 << 40, Payloads: 1}) {
		t.Errorf("the amount is %+v", got)
	}
}

func TestArguments(t *testing.T) {
	got := Arguments("cm:9618", "site")
	want := []string{"-pool", "cm:9618", "-long", "-attributes", "Name,K8SPodName,SlotType,PartitionableSlot,State,Cpus,Memory,Disk,GPUs,Payloads,Offline,Requirements,PodStarterRestUntil,PodStarterOfflineUntil,TotalSlotCpus,TotalSlotMemory,TotalSlotDisk,TotalSlotGPUs,TotalSlotPayloads,GlobalJobId,JobStart,JobStarts,JobBusyTimeCount,JobBusyTimeAvg", "-constraint", `regexp("@site-", Name) || regexp("^site-", K8SPodName ?: "")`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("Name = \"slot1@p\"\nState = \"Unclaimed\"\nCpus = 1\n\nName = \"slot1_1@p\"\nState = \"Claimed\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		pods, _ := Read(strings.NewReader(text))
		for name, p := range pods {
			if p.Free.CPUs < 0 || name == "" || p.Started < 0 || p.Ended < 0 || p.Busy < 0 {
				t.Errorf("%q has %+v", name, p)
			}
		}
	})
}

// A slot has a size whatever its jobs have of it. What the ad does not say is not
// known.
func TestWhole(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want resources.Amount
	}{
		"a static slot":            {"Name = \"slot1@p\"\nState = \"Claimed\"\nCpus = 2\nMemory = 4000\nDisk = 10\nGPUs = 0\n", resources.Amount{CPUs: 2, Memory: 4000, Disk: 10, Payloads: unsaid}},
		"a slot with jobs":         {"Name = \"slot1@p\"\nState = \"Unclaimed\"\nPartitionableSlot = true\nSlotType = \"Partitionable\"\nCpus = 0\nMemory = 0\nDisk = 1\nTotalSlotCpus = 4\nTotalSlotMemory = 8000\nTotalSlotDisk = 10.0\nTotalSlotGPUs = 1\nTotalSlotPayloads = 3\n", resources.Amount{CPUs: 4, Memory: 8000, Disk: 10, GPUs: 1, Payloads: 3}},
		"one that says nothing":    {"Name = \"slot1@p\"\nState = \"Unclaimed\"\nPartitionableSlot = true\nCpus = 1\n", resources.Amount{CPUs: unsaid, Memory: unsaid, Disk: unsaid, GPUs: unsaid, Payloads: unsaid}},
		"the largest of its slots": {"Name = \"slot1@p\"\nState = \"Unclaimed\"\nCpus = 2\nMemory = 1\nDisk = 1\nGPUs = 0\n\nName = \"slot2@p\"\nState = \"Unclaimed\"\nCpus = 1\nMemory = 9\nDisk = 1\nGPUs = 0\n\nName = \"slot1_1@p\"\nSlotType = \"Dynamic\"\nState = \"Claimed\"\nCpus = 7\nTotalSlotCpus = 7\n", resources.Amount{CPUs: 2, Memory: 9, Disk: 1, Payloads: unsaid}},
	} {
		pods, err := Read(strings.NewReader(c.text))
		if err != nil || pods["p"].Whole != c.want {
			t.Errorf("%s: %+v, %v", name, pods["p"], err)
		}
	}
}

// Names are kept for each pod, and said in errors, so they are bounded.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 60<<10)
	pods, err := Read(strings.NewReader("Name = \"slot1@p-1" + long + "\"\nK8SPodName = \"p-1\"\nState = \"Unclaimed\"\n\nName = \"slot1@p-2\"\nState = \"" + long + "\"\n\nName = \"slot1@p-3\"\nState = \"Unclaimed\"\n"))
	if err == nil || len(err.Error()) > 2000 {
		t.Errorf("the error is %v", err)
	}
	if pods["p-1"] != nil || pods["p-2"] == nil || pods["p-3"] == nil {
		t.Errorf("there are %+v", pods)
	}
}
