package main

import (
	"slices"
	"strings"
)

// A Row is a kind of cluster.
type Row struct {
	// Kubernetes is a version as `pool up --kubernetes` takes it.
	Kubernetes string
	// Node is what decides on the row beside that version, in a word or two.
	Node string
	// Where is what the node is.
	Where string
	// Lacks are tests of rules that this version does not have yet.
	Lacks []string
	// Otherwise are options of `pool up` for a node that is not as the pool has it.
	Otherwise []string
}

// What the rows are made of.
const (
	containerd = "containerd"
	guest      = "guest"
	host       = "host"
)

// The tests of rules that Kubernetes has from one of these on.
var (
	before132 = append([]string{"TestPullErrorsNameTheImage"}, before133...)
	before133 = append([]string{"TestGenerationCountsChangesOfTheSpec"}, before134...)
	before134 = []string{"TestStatusShowsTheSpecThenTheContainers", "TestStatusStandsStillDuringAPull"}
)

// Rows are all rows. From 1.35 on a kubelet refuses a machine with cgroup v1 unless it is told otherwise, so these run in
// guests alone. What decides on a row beside the version of Kubernetes runs on the pool's own, which most tests run on.
var Rows = []Row{
	{Kubernetes: "1.31", Node: containerd, Where: host, Lacks: before132},
	{Kubernetes: "1.31", Node: containerd, Where: guest, Lacks: before132},
	{Kubernetes: "1.32", Node: containerd, Where: guest, Lacks: before133},
	{Kubernetes: "1.33", Node: containerd, Where: guest, Lacks: before134},
	{Kubernetes: "1.34", Node: containerd, Where: host},
	{Kubernetes: "1.34", Node: containerd, Where: guest},
	{Kubernetes: "1.35", Node: containerd, Where: guest},
	{Kubernetes: "1.36", Node: containerd, Where: guest},
	{Kubernetes: "1.37", Node: containerd, Where: guest},
	{Kubernetes: "1.34", Node: "containerd 1.7", Where: guest, Otherwise: []string{"--containerd", "1.7"}},
	{Kubernetes: "1.34", Node: "crun", Where: guest, Otherwise: []string{"--oci-runtime", "crun"}},
	// As a kubelet has it that nobody configured.
	{Kubernetes: "1.34", Node: "serial pulls", Where: guest, Otherwise: []string{"--kubelet", `{"serializeImagePulls":true}`}},
	// Without memory.oom.group.
	{Kubernetes: "1.34", Node: "single OOM kill", Where: guest, Otherwise: []string{"--kubelet", `{"singleProcessOOMKill":true}`}},
	{Kubernetes: "1.34", Node: "evented PLEG", Where: guest, Otherwise: []string{"--gates", "EventedPLEG=true"}},
	{Kubernetes: "1.34", Node: "user namespaces", Where: guest, Otherwise: []string{"--user-namespaces"}},
	// What is to come. That one needs interfaces that are off by default.
	{Kubernetes: "1.37", Node: "beta gates", Where: guest, Otherwise: []string{"--gates", "AllBeta=true,CoordinatedLeaderElection=false"}},
}

// Name is the row's name in the record.
func (r Row) Name() string { return strings.Join([]string{r.Kubernetes, r.Node, r.Where}, " ") }

// up are the arguments of `pool up`.
func (r Row) up() []string {
	args := []string{"up", "--condor", "25.14", "--kubernetes", r.Kubernetes}
	if r.Where == guest {
		args = append(args, "--guest")
	}
	return slices.Concat(args, r.Otherwise)
}

// A suite is a package of tests, and which of them run; all if it does not say.
type suite struct{ pkg, tests string }

// suites are the rules that we rely on, and the main path of jobs.
var suites = []suite{
	{"kubeletrules", ""},
	{"e2e", "TestPlainJob$|TestExits|TestImages|TestOutOfMemory|TestVacate$|TestRemoveLeavesNoProcess|TestCheckOfHealthyPod"},
}

// arguments are those of `go`; in a guest, pool runs the tests.
func (s suite) arguments(r Row, pool string) []string {
	args := []string{"-C", "integration", "test", "-json", "-tags", "pool", "-count=1", "-timeout", "20m"}
	if r.Where == guest {
		args = append(args, "-exec", pool+" in")
	}
	args = append(args, "./"+s.pkg)
	if s.tests != "" {
		args = append(args, "-run", s.tests)
	}
	return args
}
