package usage

import (
	"log/slog"
	"sync"
	"time"

	"podstarter/condor/job"
	"podstarter/payload"
	"podstarter/payload/memcg"
	"podstarter/payload/proctable"
)

// Knobs say how memory is measured.
type Knobs struct {
	PSS       bool // USE_PSS: proportional set sizes are wanted
	Peak      bool // CGROUP_USE_PEAK_MEMORY: the kernel's figure for the peak counts
	FileCache bool // CGROUP_IGNORE_CACHE_MEMORY is off: that figure includes page cache
}

// Meter keeps what the payload has used: counters as they grow, and the highest
// value of what goes up and down, as seen at each look. Its methods may be called
// from several goroutines.
type Meter struct {
	log   *slog.Logger
	knobs Knobs

	looking sync.Mutex // held by the goroutine that looks: one at a time

	// mu guards what follows. It is held for no longer than it takes to count: the
	// goroutine that looks does not hold it while it waits for an answer.
	mu       sync.Mutex
	halted   bool   // there is nothing to look at any more
	stopLook func() // ends the look that goes on; nil before the first

	statistics   *job.Statistics // nil before the first run
	user, sys    time.Duration   // of this run
	earlier      spent           // by runs of this activation that have ended
	image        int64           // largest sum of virtual sizes, bytes
	resident     int64           // largest sum of resident sets, bytes
	single       int64           // largest resident set of any one process that has ended, bytes
	proportional int64           // largest sum of proportional sets, bytes
	processes    int             // at the last look
	tasks        int             // threads of all processes, at the last look
	memory       memory
	watch        *memcg.Watch         // of this run's memory; nil without one
	group        *payload.CgroupUsage // at the last look; nil while nothing is known
	io           *job.IO              // of this run; nil while nothing is known
	load         load
}

// spent is what adds up over the runs of one activation.
type spent struct {
	user, sys time.Duration
	io        job.IO
}

// NewMeter is a meter of a payload that has not begun.
func NewMeter(knobs Knobs, log *slog.Logger) *Meter {
	return &Meter{knobs: knobs, log: log, memory: noMemory()}
}

// Begin allows looks at a run of the payload. The first call begins the statistics,
// with their knobs from cfg; later ones keep what earlier runs used.
func (m *Meter) Begin(cfg job.Knobs) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.halted = false
	if m.statistics != nil {
		return
	}
	var err error
	if m.statistics, err = job.NewStatistics(cfg, time.Now()); err != nil {
		m.log.Warn("A knob about statistics is not understood, its default holds", "error", err)
	}
}

// NextRun begins another run of the job in this activation: wrapper and process
// table count each run from 0, reports go on from what the earlier runs used
// (vanilla_proc.cpp:m_checkpoint_usage).
func (m *Meter) NextRun() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.earlier.user += m.user
	m.earlier.sys += m.sys
	if m.io != nil {
		m.earlier.io = m.total()
	}
	m.user, m.sys, m.io, m.load, m.group, m.memory.evidence = 0, 0, nil, load{}, nil, nil
}

// total is the I/O of all runs. m.mu is held, and m.io is not nil.
func (m *Meter) total() job.IO {
	plus := func(a, b int64) int64 { return a + max(0, b) }
	return job.IO{
		ReadBytes: plus(m.earlier.io.ReadBytes, m.io.ReadBytes), WriteBytes: plus(m.earlier.io.WriteBytes, m.io.WriteBytes),
		Reads: plus(m.earlier.io.Reads, m.io.Reads), Writes: plus(m.earlier.io.Writes, m.io.Writes),
	}
}

// seenInTable adds what the starter's own table says.
func (m *Meter) seenInTable(snapshot proctable.Snapshot) {
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
func (m *Meter) seen(usage payload.ContainerUsage) {
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

// End adds what the exit record says of the run. The number of processes stays what
// it was at the last look (os_proc.cpp:JobReaper).
func (m *Meter) End(exit payload.Exit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grow(exit.UserCPU, exit.SystemCPU)
	m.cgroup(exit.Cgroup, exit.Ended)
	m.single = max(m.single, exit.MaxRSS)
	m.load = load{}
}

// grow raises the counters, which never go back: a process table loses the time of
// processes that ended unreaped. m.mu is held.
func (m *Meter) grow(user, sys time.Duration) {
	m.user, m.sys = max(m.user, user), max(m.sys, sys)
}

// cgroup adds what the container's own cgroup counted, if the payload has one:
// it counts also the processes that came and went between two looks. m.mu is held.
func (m *Meter) cgroup(c *payload.CgroupUsage, at time.Time) {
	if c == nil {
		return
	}
	m.grow(max(0, c.UserCPU), max(0, c.SystemCPU))
	m.memory.see(*c, at)
	m.group = c
	if c.ReadBytes >= 0 && c.WriteBytes >= 0 {
		m.io = &job.IO{ReadBytes: c.ReadBytes, WriteBytes: c.WriteBytes, Reads: c.Reads, Writes: c.Writes}
	}
}

// Tasks is how many processes and threads the payload had at the last look.
func (m *Meter) Tasks() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tasks
}

// Cores is how many CPUs the payload kept busy between the last two looks; known is
// false if there were none.
func (m *Meter) Cores() (cores float64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.load.cores, m.load.known
}

// AddTo says in p what the payload has used so far, in all runs.
func (m *Meter) AddTo(p *job.Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.Usage, p.Statistics = m.usage(), m.statistics
	p.Cgroup = m.memory.own >= 0
}

// Used is what the payload has used so far, in all runs.
func (m *Meter) Used() job.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.usage()
}

// usage is what has been used so far. m.mu is held.
func (m *Meter) usage() job.Usage {
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
// m.mu is held.
func (m *Meter) sizes() (resident, image int64) {
	if m.memory.own < 0 {
		resident = max(m.resident, m.single)
		return resident, max(m.image, resident)
	}
	resident = max(m.memory.own, m.single)
	image = resident
	switch {
	case !m.knobs.Peak || m.memory.peak <= 0:
	case m.knobs.FileCache:
		image = max(image, m.memory.peak)
	default:
		cache := max(0, m.memory.cache)
		if m.group != nil {
			cache = max(cache, m.group.MemoryCache) // it may have come after the look that found most of the job's own
		}
		resident = max(resident, m.memory.peak-cache)
		image = resident
	}
	return resident, image
}
