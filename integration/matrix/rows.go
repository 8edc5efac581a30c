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
	// Otherwise are options of `pool up` for a node that is not as the pool has it.
	Otherwise []string
}

// What the rows are made of.
const (
	containerd = "containerd"
	guest      = "guest"
	host       = "host"
)

// Rows are all rows. From 1.35 on a kubelet refuses a machine with cgroup v1 unless it is told otherwise, so these run in
// guests alone. What decides on a row beside the version of Kubernetes runs on the pool's own, which most tests run on.
var Rows = []Row{
	{"1.31", containerd, host, nil},
	{"1.31", containerd, guest, nil},
	{"1.32", containerd, guest, nil},
	{"1.33", containerd, guest, nil},
	{"1.34", containerd, host, nil},
	{"1.34", containerd, guest, nil},
	{"1.35", containerd, guest, nil},
	{"1.36", containerd, guest, nil},
	{"1.37", containerd, guest, nil},
	{"1.34", "containerd 1.7", guest, []string{"--containerd", "1.7"}},
	{"1.34", "crun", guest, []string{"--oci-runtime", "crun"}},
	// As a kubelet has it that nobody configured.
	{"1.34", "serial pulls", guest, []string{"--kubelet", `{"serializeImagePulls":true}`}},
	// Without memory.oom.group.
	{"1.34", "single OOM kill", guest, []string{"--kubelet", `{"singleProcessOOMKill":true}`}},
	{"1.34", "evented PLEG", guest, []string{"--gates", "EventedPLEG=true"}},
	// What is to come. That one needs interfaces that are off by default.
	{"1.37", "beta gates", guest, []string{"--gates", "AllBeta=true,CoordinatedLeaderElection=false"}},
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
