package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"time"

	"podstarter/payload"
)

// tasks watches how many processes and threads the payload has. The kernel's limit
// for a user (RLIMIT_NPROC) is no substitute: it counts the user in all pods of the
// node, so that one pod's payload would use up what the others may have.
type tasks struct {
	most  int64
	clock *time.Ticker
	count *os.File // of the container's control group, threads included
}

const (
	// tasksPeriod is how long a payload can have more than it may unseen. What is
	// read takes microseconds, and gets them however many processes ask for the CPU.
	tasksPeriod = 200 * time.Millisecond
	// ownTasks is more than the wrapper and its launchers have; they are in the same
	// control group.
	ownTasks = 64
)

// watchTasks begins to watch a run that has a limit.
func (a *agent) watchTasks(s *payload.Spec) {
	a.unwatchTasks()
	path := a.cgroup.tasksFile()
	if s.MaxTasks <= 0 || path == "" {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		a.log.print("the number of the payload's processes cannot be watched: %v", err)
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

// countTasks ends a payload that has too many.
func (a *agent) countTasks() {
	var buffer [24]byte
	n, _ := a.tasks.count.ReadAt(buffer[:], 0)
	if now := parseNumber(string(bytes.TrimSpace(buffer[:n]))); now > a.tasks.most {
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

// tasksFile tells how many processes and threads are in the group; empty if nothing
// does.
func (c *cgroup) tasksFile() string {
	switch {
	case c == nil:
		return ""
	case c.dirs["pids"] != "":
		return filepath.Join(c.dirs["pids"], "pids.current")
	case c.dirs[""] != "":
		return filepath.Join(c.dirs[""], "pids.current")
	}
	return ""
}
