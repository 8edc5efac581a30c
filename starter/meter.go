package main

import (
	"log/slog"
	"sync"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/job"
	"podstarter/payload"
	"podstarter/payload/proctable"
)

// meter keeps what the payload has used: counters as they grow, and the
// highest of what goes up and down, seen at each look.
type meter struct {
	log  *slog.Logger
	pss  bool // USE_PSS: proportional set sizes are wanted
	peak bool // CGROUP_USE_PEAK_MEMORY: the kernel's own word on the peak counts
	file bool // CGROUP_IGNORE_CACHE_MEMORY is off: page cache is in that word

	looking sync.Mutex // held by who looks: one at a time
	over    bool       // mu is held: there is nothing to look at any more
	stop    func()     // mu is held: ends the look that goes on

	mu           sync.Mutex
	user, sys    time.Duration
	earlier      spent // by runs of this activation that have ended
	image        int64 // largest sum of virtual sizes, bytes
	resident     int64 // largest sum of resident sets, bytes
	single       int64 // largest resident set of any one process that has ended, bytes
	proportional int64 // largest sum of proportional sets, bytes
	processes    int
	tasks        int // threads of all processes
	memory       memory
	io           *job.IO
	load         load
	statistics   *job.Statistics
}

// spent is what adds up over the runs of one activation.
type spent struct {
	user, sys time.Duration
	io        job.IO
}

// begin begins to count for the first run; for a later one it keeps what the
// earlier ones used.
func (m *meter) begin(cfg *config.Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = false
	if m.statistics != nil {
		return
	}
	var err error
	if m.statistics, err = job.NewStatistics(cfg, now()); err != nil {
		m.log.Warn("A knob about statistics is not understood, its default holds", "error", err)
	}
}

// nextRun makes room for another run of the job in this activation: wrapper and
// process table count each run from 0, reports go on from what there was
// (vanilla_proc.cpp:m_checkpoint_usage).
func (m *meter) nextRun() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.earlier.user += m.user
	m.earlier.sys += m.sys
	if m.io != nil {
		m.earlier.io = m.total()
	}
	m.user, m.sys, m.io, m.load = 0, 0, nil, load{}
}

// total is the I/O of all runs. The lock is held.
func (m *meter) total() job.IO {
	plus := func(a, b int64) int64 { return a + max(0, b) }
	return job.IO{
		ReadBytes: plus(m.earlier.io.ReadBytes, m.io.ReadBytes), WriteBytes: plus(m.earlier.io.WriteBytes, m.io.WriteBytes),
		Reads: plus(m.earlier.io.Reads, m.io.Reads), Writes: plus(m.earlier.io.Writes, m.io.Writes),
	}
}

// seenInTable adds what the starter's own table says.
func (m *meter) seenInTable(snapshot proctable.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tasks = max(m.tasks, snapshot.Threads)
	m.grow(snapshot.UserCPU, snapshot.SystemCPU)
	m.resident = max(m.resident, snapshot.RSS)
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
	m.grow(usage.UserCPU, usage.SystemCPU)
	m.cgroup(usage.Cgroup, usage.Time)
	m.resident = max(m.resident, usage.RSS)
	m.single = max(m.single, usage.MaxRSS)
	m.image = max(m.image, usage.ImageSize)
	m.processes, m.tasks = usage.Processes, usage.Threads
	m.load.see(usage.Time, m.user+m.sys)
}

// end adds what the exit record says. How many processes there were last is told
// once more (os_proc.cpp:JobReaper).
func (m *meter) end(exit payload.Exit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grow(exit.UserCPU, exit.SystemCPU)
	m.cgroup(exit.Cgroup, exit.Ended)
	m.single = max(m.single, exit.MaxRSS)
	m.load = load{}
}

// grow raises the counters, which never go back: a process table loses what
// ended unreaped.
func (m *meter) grow(user, sys time.Duration) {
	m.user, m.sys = max(m.user, user), max(m.sys, sys)
}

// cgroup adds what the container's own cgroup counted, if the payload has one:
// every process is in it, also those that came and went between two looks.
func (m *meter) cgroup(c *payload.CgroupUsage, at time.Time) {
	if c == nil {
		return
	}
	m.grow(max(0, c.UserCPU), max(0, c.SystemCPU))
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

// withinLimit says whether the job kept well below its memory; see memory.
func (m *meter) withinLimit() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memory.withinLimit()
}

// grouped says whether the job has a cgroup of its own whose figures can be
// read.
func (m *meter) grouped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memory.own >= 0
}

// cores is how many CPUs the payload kept busy between the last two looks;
// false if there were none.
func (m *meter) cores() (float64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.load.cores, m.load.known
}

// usage is what has been used so far.
func (m *meter) usage() job.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := job.Usage{
		UserCPU: m.earlier.user + m.user, SystemCPU: m.earlier.sys + m.sys, IOWait: -1,
		ProportionalBytes: m.proportional, Processes: m.processes,
	}
	u.ResidentBytes, u.ImageBytes = m.sizes()
	if m.io != nil {
		total := m.total()
		u.IO = &total
	}
	return u
}

// sizes are the job's largest resident set and image size. As in stock, a cgroup
// that can be read is asked for both, since it counts what processes share once
// (proc_family_direct_cgroup_v2.cpp:get_usage); without one they are sums over
// processes. The largest process that has ended tells of peaks between two looks.
// The lock is held.
func (m *meter) sizes() (resident, image int64) {
	if m.memory.own < 0 {
		resident = max(m.resident, m.single)
		return resident, max(m.image, resident)
	}
	resident = max(m.memory.own, m.single)
	image = resident
	switch {
	case !m.peak || m.memory.peak <= 0:
	case m.file:
		image = max(image, m.memory.peak)
	default:
		resident = max(resident, m.memory.peak-max(0, m.memory.cache))
		image = resident
	}
	return resident, image
}
