package agent

import (
	"os"
	"time"

	"podstarter/payload"
	"podstarter/payload/memcg"
)

// tasks watches how many processes and threads the payload has. The kernel's limit for a
// user (RLIMIT_NPROC) cannot replace this: it counts the user's processes in all pods of
// the node, so one pod's payload would use up the limit of the others.
type tasks struct {
	most  int64
	clock *time.Ticker
	count *os.File // of the container's control group, threads included
}

const (
	// tasksPeriod is how long a payload can exceed its limit unnoticed. Each reading takes
	// microseconds of CPU time, which the wrapper gets however many processes compete.
	tasksPeriod = 200 * time.Millisecond
	// ownTasks exceeds the number of tasks of the wrapper and its launchers, which are in
	// the same control group.
	ownTasks = 64
)

// watchTasks starts watching a run that has a limit.
func (a *agent) watchTasks(s *payload.Spec) {
	a.unwatchTasks()
	path := a.cgroup.tasksFile()
	if s.MaxTasks <= 0 || path == "" {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		a.log.print("cannot watch the number of the payload's processes: %v", err)
		return
	}
	a.tasks = &tasks{most: int64(s.MaxTasks) + ownTasks, clock: time.NewTicker(tasksPeriod), count: f}
}

func (a *agent) unwatchTasks() {
	if a.tasks == nil {
		return
	}
	a.tasks.clock.Stop()
	a.tasks.count.Close()
	a.tasks = nil
}

// countTasks kills a payload that has too many.
func (a *agent) countTasks() {
	var buffer [24]byte
	n, _ := a.tasks.count.ReadAt(buffer[:], 0)
	if now := memcg.Number(buffer[:n]); now > a.tasks.most {
		a.tooManyTasks(now)
	}
}

func (a *agent) tooManyTasks(n int64) {
	if a.sweep != nil || a.run == nil {
		return
	}
	a.log.print("%d processes and threads are too many, killing the payload of %s", n, a.run.spec.Activation)
	a.beginSweep(0, payload.KilledTasks)
}

// tasksFile is the file with the number of processes and threads in the group; empty if
// there is none.
func (c *cgroup) tasksFile() string {
	if c == nil {
		return ""
	}
	return c.pidsFile("pids.current")
}
