package usage

import (
	"fmt"
	"time"

	"podstarter/classads"
	"podstarter/payload/memcg"
)

// WatchMemory watches the memory of a run until [Meter.EndWatch], and looks at least that
// often. files may be nil: then only the wrapper's answers tell of it.
func (m *Meter) WatchMemory(files *memcg.Files, every time.Duration) {
	w := memcg.NewWatch(files, every)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watch = w
}

// EndWatch looks at the memory a last time. It must come soon after the end of a container: the
// kernel's figures are there until the container runtime removes its control group. Later
// calls do nothing.
func (m *Meter) EndWatch() {
	m.mu.Lock()
	w := m.watch
	m.watch = nil
	m.mu.Unlock()
	if w == nil {
		return
	}
	found := w.Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.memory.watched(found)
}

// Exhausted is the reason of a hold for want of memory: the sentence of the stock
// starter, and in parentheses what helps the user to choose a better request_memory.
// ad is the job's; limit is the container's as the backend knows it, in bytes, 0 if it does
// not.
func (m *Meter) Exhausted(ad *classads.Ad, limit int64) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memory.exhausted(ad, time.Now(), limit)
}

// KernelKilled says whether the kernel has killed processes of this run for want of memory, as
// far as the watch has seen.
func (m *Meter) KernelKilled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	is, _ := m.memory.killed()
	return is
}

// WithinLimit says whether the payload is known to have used less than nine tenths
// of the memory that it may use.
func (m *Meter) WithinLimit() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memory.withinLimit()
}

// Remark logs what slowed a run down or was refused to it, of which no attribute tells.
func (m *Meter) Remark() {
	m.mu.Lock()
	c := m.group
	m.mu.Unlock()
	if c == nil {
		return
	}
	if c.Throttled > 0 {
		m.log.Info(fmt.Sprintf("The container's CPU limit slowed the job down in %d of %d periods, by %s in all", c.Throttled, c.Periods, c.ThrottledCPU.Round(time.Millisecond)))
	}
	if c.MemoryHigh > 0 {
		m.log.Warn(fmt.Sprintf("The kernel slowed the job down %d times, since it used more memory than the container's memory.high", c.MemoryHigh))
	}
	if c.PidsRefused > 0 {
		m.log.Warn(fmt.Sprintf("The kernel refused the job a process or thread %d times: the limit of its container or pod was reached (podPidsLimit of the kubelet, or the container runtime's)", c.PidsRefused))
	}
}
