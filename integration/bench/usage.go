package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// Who uses CPU time, by the names of the tables.
const (
	ofStarters   = "starters"
	ofContainers = "payload containers: wrappers and jobs"
	ofKubelet    = "kubelet"
	ofContainerd = "containerd, its shims and runc"
	ofAPIServer  = "API server"
	ofEtcd       = "etcd"
	ofMachine    = "the whole machine"
)

// consumers are all of them, in the order of the tables.
var consumers = []string{ofStarters, ofContainers, ofKubelet, ofContainerd, ofAPIServer, ofEtcd, ofMachine}

// usage is the CPU time that each of them has used.
type usage map[string]time.Duration

// since is what has been used since before.
func (u usage) since(before usage) usage {
	grown := usage{}
	for who, used := range u {
		grown[who] = used - before[who]
	}
	return grown
}

// meter reads the CPU time of the processes that a side's jobs keep busy.
type meter struct {
	startd     int
	daemons    map[string]int // by the name of a consumer
	shim       int            // of their pod
	pod, pilot group
	separate   bool // jobs run in containers of their own
}

// newMeter finds these processes.
func (b *bencher) newMeter(side harness.Side) (*meter, error) {
	named := func(comm string) func(harness.Process) bool {
		return func(p harness.Process) bool {
			return p.Comm == comm && slices.ContainsFunc(p.Args, func(arg string) bool { return strings.Contains(arg, b.pool.State+"/") })
		}
	}
	m := &meter{daemons: map[string]int{}, separate: !side.IsStock()}
	for who, keep := range map[string]func(harness.Process) bool{
		ofKubelet: named("kubelet"), ofContainerd: named("containerd"), ofAPIServer: b.pool.APIServer, ofEtcd: named("etcd"),
	} {
		p, err := harness.One(who, keep)
		if err != nil {
			return nil, err
		}
		m.daemons[who] = p.PID
	}
	inside := b.pool.Inside(side)
	startd, err := harness.One("startd", func(p harness.Process) bool { return p.Comm == startdComm && inside(p) })
	if err != nil {
		return nil, err
	}
	m.startd = startd.PID
	if m.shim, err = shimOf(m.startd); err != nil {
		return nil, err
	}
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", m.startd))
	if err != nil {
		return nil, err
	}
	m.pod, m.pilot, err = groupsOf(string(groups))
	return m, err
}

// shimOf is the shim of a pod, which all processes of its containers descend from. Shims of
// other pods come and go: containerd takes minutes to end a pod of fifty containers.
func shimOf(pid int) (int, error) {
	for pid > 1 {
		p, err := harness.ReadProcess(pid)
		if err != nil {
			return 0, err
		}
		if p.Comm == "containerd-shim" {
			return pid, nil
		}
		pid = p.Parent
	}
	return 0, errors.New("looking for the pod's shim: the startd descends from none")
}

// read is what all have used until now.
func (m *meter) read() (usage, error) {
	u := usage{}
	var err error
	if u[ofStarters], err = reaped(m.startd); err != nil {
		return nil, err
	}
	if m.separate {
		whole, err := m.pod.used()
		if err != nil {
			return nil, err
		}
		pilot, err := m.pilot.used()
		if err != nil {
			return nil, err
		}
		u[ofContainers] = whole - pilot
	}
	for who, pid := range m.daemons {
		if u[who], err = processTime(pid); err != nil {
			return nil, fmt.Errorf("reading the CPU time of %s: %w", who, err)
		}
	}
	own, err := processTime(m.shim)
	if err != nil {
		return nil, fmt.Errorf("reading the CPU time of the pod's shim: %w", err)
	}
	below, err := reaped(m.shim)
	if err != nil {
		return nil, err
	}
	u[ofContainerd] += own + below
	// A shim reaps runc, and also the wrappers, which have been counted.
	u[ofContainerd] -= u[ofContainers]
	u[ofMachine], err = machineTime()
	return u, err
}

// userHz is the unit of times in /proc, a second's part (proc_pid_stat(5)): the same on all
// machines that Go programs run on.
const userHz = 100

func ticks(fields ...string) (time.Duration, error) {
	var sum int64
	for _, f := range fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / userHz, nil
}

// reaped is the CPU time of the children of a process that have ended, and of theirs. The
// kernel adds them up exactly.
func reaped(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return reapedIn(string(text))
}

func reapedIn(stat string) (time.Duration, error) {
	// The name may have anything in it; the state, field 3, follows.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const children = 16 - 3 // cutime, and cstime behind it
	if len(fields) < children+2 {
		return 0, fmt.Errorf("reading %q: too few fields", stat)
	}
	return ticks(fields[children], fields[children+1])
}

// machineTime is how long all processors have worked.
func machineTime() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return machineIn(string(text))
}

func machineIn(stat string) (time.Duration, error) {
	first, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(first)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, fmt.Errorf("reading %q: not the line of all processors", first)
	}
	// user, nice, system; neither idle nor iowait; irq, softirq
	return ticks(fields[1], fields[2], fields[3], fields[6], fields[7])
}

// group is the file that has the CPU time of a control group, with that of groups below it
// that are gone.
type group string

// containerPattern finds a pod's group and its container's in a path.
var containerPattern = regexp.MustCompile(`^((?:/[^/]+)*/pod[0-9a-f-]{36})/[^/]+`)

// groupsOf are the groups of the pod and of the container of a process, from /proc/PID/cgroup.
func groupsOf(text string) (pod, container group, err error) {
	const root = "/sys/fs/cgroup"
	var dir, file, path string
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case slices.Contains(strings.Split(parts[1], ","), "cpuacct"):
			dir, file, path = filepath.Join(root, parts[1]), "cpuacct.usage", parts[2]
		case parts[1] == "" && file == "":
			dir, file, path = root, "cpu.stat", parts[2]
		}
	}
	m := containerPattern.FindStringSubmatch(path)
	if m == nil {
		return "", "", fmt.Errorf("no pod in the control groups %q", text)
	}
	return group(filepath.Join(dir, m[1], file)), group(filepath.Join(dir, m[0], file)), nil
}

func (g group) used() (time.Duration, error) {
	text, err := os.ReadFile(string(g))
	if err != nil {
		return 0, err
	}
	return groupTime(string(text))
}

// groupTime reads cpuacct.usage, or cpu.stat of cgroup v2.
func groupTime(text string) (time.Duration, error) {
	unit := time.Nanosecond
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "usage_usec "); ok {
			text, unit = rest, time.Microsecond
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return time.Duration(n) * unit, err
}
