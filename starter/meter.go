package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"podstarter/condor/job"
	"podstarter/payload"
)

// meter keeps what the payload has used: counters as they grow, and the
// highest of what goes up and down, seen at each look.
type meter struct {
	log *slog.Logger

	mu        sync.Mutex
	user, sys time.Duration
	image     int64 // largest sum of virtual sizes, bytes
	resident  int64 // largest sum of resident sets, bytes
	processes int
	cgroup    *payload.CgroupUsage
}

// look asks the wrapper, which sees every process of the payload whatever
// namespaces the pod shares.
func (m *meter) look(ctx context.Context, client *payload.Client) {
	usage, err := client.Usage(ctx)
	if err != nil {
		m.log.Debug("No usage from the wrapper", "error", err)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grow(usage.UserCPU, usage.SystemCPU, max(usage.RSS, usage.MaxRSS), usage.Cgroup)
	m.image = max(m.image, usage.ImageSize)
	m.processes = usage.Processes
}

// end adds what the exit record says.
func (m *meter) end(exit payload.Exit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grow(exit.UserCPU, exit.SystemCPU, exit.MaxRSS, exit.Cgroup)
	m.processes = 0
}

// grow raises the counters. The cgroup counts every process, also those that
// came and went between two looks; without one of the payload's own the
// process table and the reaped children must do. Counters never go back: the
// process table loses what ended unreaped.
func (m *meter) grow(user, sys time.Duration, resident int64, cgroup *payload.CgroupUsage) {
	if cgroup != nil {
		m.cgroup = cgroup
		if cgroup.UserCPU >= 0 && cgroup.SystemCPU >= 0 {
			user, sys = cgroup.UserCPU, cgroup.SystemCPU
		}
		resident = max(resident, cgroup.MemoryUsed)
	}
	m.user, m.sys = max(m.user, user), max(m.sys, sys)
	m.resident = max(m.resident, resident)
	m.image = max(m.image, m.resident)
}

// usage is what has been used so far.
func (m *meter) usage() job.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := job.Usage{
		UserCPU: m.user, SystemCPU: m.sys, IOWait: -1,
		ImageBytes: m.image, ResidentBytes: m.resident, Processes: m.processes,
	}
	if c := m.cgroup; c != nil && c.ReadBytes >= 0 && c.WriteBytes >= 0 {
		u.IO = &job.IO{ReadBytes: c.ReadBytes, WriteBytes: c.WriteBytes, Reads: c.Reads, Writes: c.Writes}
	}
	return u
}
