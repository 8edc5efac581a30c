package main

import "strings"

// A Row is a kind of cluster.
type Row struct {
	// Kubernetes is a version as `pool up --kubernetes` takes it.
	Kubernetes string
	// Runtime is what runs containers.
	Runtime string
	// Where is what the node is.
	Where string
}

// What the rows are made of.
const (
	containerd = "containerd"
	guest      = "guest"
	host       = "host"
)

// Rows are all rows. From 1.35 on a kubelet refuses a machine with cgroup v1 unless it is told otherwise, so these run in
// guests alone.
var Rows = []Row{
	{"1.33", containerd, guest},
	{"1.34", containerd, guest},
	{"1.34", containerd, host},
	{"1.37", containerd, guest},
}

// Name is the row's name in the record.
func (r Row) Name() string { return strings.Join([]string{r.Kubernetes, r.Runtime, r.Where}, " ") }

// up are the arguments of `pool up`.
func (r Row) up() []string {
	args := []string{"up", "--condor", "25.14", "--kubernetes", r.Kubernetes}
	if r.Where == guest {
		args = append(args, "--guest")
	}
	return args
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
