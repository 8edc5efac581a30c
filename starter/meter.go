package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/payload"
	"podstarter/payload/ptable"
)

// meter keeps what the payload has used: counters as they grow, and the
// highest of what goes up and down, seen at each look.
type meter struct {
	log *slog.Logger
	pss bool // USE_PSS: proportional set sizes are wanted

	mu           sync.Mutex
	user, sys    time.Duration
	image        int64 // largest sum of virtual sizes, bytes
	resident     int64 // largest sum of resident sets, bytes
	proportional int64 // largest sum of proportional sets, bytes
	processes    int
	memory       memory
	io           *job.IO
}

// look asks the wrapper, which knows the container's cgroup, and where the
// starter sees the payload's processes itself, its own table of them; table is
// nil where it does not.
func (m *meter) look(ctx context.Context, client *payload.Client, table *ptable.Table) {
	usage, err := client.Usage(ctx)
	if err != nil {
		m.log.Debug("No usage from the wrapper", "error", err)
		return
	}
	m.seen(usage)
	if table == nil {
		return
	}
	snapshot, err := table.Snapshot(ctx, ptable.Detail{PSS: m.pss, IO: true})
	if err != nil {
		m.log.Warn("The payload's processes cannot be looked at, only the wrapper's word counts", "error", err)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grow(snapshot.UserCPU, snapshot.SystemCPU, snapshot.RSS)
	m.image = max(m.image, snapshot.ImageSize)
	m.proportional = max(m.proportional, snapshot.PSS)
	m.processes = len(snapshot.Processes)
	if m.io == nil && snapshot.ReadBytes >= 0 && snapshot.WriteBytes >= 0 {
		m.io = &job.IO{ReadBytes: snapshot.ReadBytes, WriteBytes: snapshot.WriteBytes, Reads: -1, Writes: -1}
	}
}

// seen adds one answer of the wrapper.
func (m *meter) seen(usage payload.ContainerUsage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grow(usage.UserCPU, usage.SystemCPU, max(usage.RSS, usage.MaxRSS))
	m.cgroup(usage.Cgroup, usage.Time)
	m.image = max(m.image, usage.ImageSize)
	m.processes = usage.Processes
}

// end adds what the exit record says.
func (m *meter) end(exit payload.Exit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grow(exit.UserCPU, exit.SystemCPU, exit.MaxRSS)
	m.cgroup(exit.Cgroup, exit.Ended)
	m.processes = 0
}

// grow raises the counters, which never go back: a process table loses what
// ended unreaped.
func (m *meter) grow(user, sys time.Duration, resident int64) {
	m.user, m.sys = max(m.user, user), max(m.sys, sys)
	m.resident = max(m.resident, resident)
	m.image = max(m.image, m.resident)
}

// cgroup adds what the container's own cgroup counted, if the payload has one:
// every process is in it, also those that came and went between two looks.
func (m *meter) cgroup(c *payload.CgroupUsage, at time.Time) {
	if c == nil {
		return
	}
	m.grow(max(0, c.UserCPU), max(0, c.SystemCPU), 0)
	m.memory.see(*c, at)
	if c.ReadBytes >= 0 && c.WriteBytes >= 0 {
		m.io = &job.IO{ReadBytes: c.ReadBytes, WriteBytes: c.WriteBytes, Reads: c.Reads, Writes: c.Writes}
	}
}

// exhausted says how a job ran out of memory; see memory.
func (m *meter) exhausted(ad *classads.Ad) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memory.exhausted(ad, now())
}

// usage is what has been used so far.
func (m *meter) usage() job.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return job.Usage{
		UserCPU: m.user, SystemCPU: m.sys, IOWait: -1,
		ImageBytes: m.image, ResidentBytes: m.resident, ProportionalBytes: m.proportional,
		Processes: m.processes, IO: m.io,
	}
}
