package usage

import (
	"fmt"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/payload"
)

// memory is what was seen of a container's memory, in bytes; -1 where the
// kernel told nothing.
type memory struct {
	limit, peak int64
	// own and cache are of the look that found most of the payload's own memory,
	// anonymous and shared, which the kernel gets back only by killing; it takes the
	// cache back first.
	own, cache int64
	looked     time.Time
}

// noMemory is a memory that nobody has looked at.
func noMemory() memory { return memory{limit: -1, peak: -1, own: -1, cache: -1} }

// see adds one look.
func (m *memory) see(c payload.CgroupUsage, at time.Time) {
	m.limit = max(m.limit, c.MemoryLimit)
	m.peak = max(m.peak, c.MemoryPeak)
	if c.MemoryUsed > m.own {
		m.own, m.cache, m.looked = c.MemoryUsed, c.MemoryCache, at
	}
}

// withinLimit says whether the payload is known to have used less than nine
// tenths of what it may, so that others have filled the machine
// (vanilla_proc.cpp:outOfMemoryEvent).
func (m *memory) withinLimit() bool {
	usage := max(m.peak, m.own)
	return m.limit > 0 && usage > 0 && usage < m.limit/10*9
}

// exhausted is the reason of a hold for want of memory: the sentence of the
// stock starter (vanilla_proc.cpp:outOfMemoryEvent), and what the user needs to
// know for the next try.
func (m memory) exhausted(ad *classads.Ad, now time.Time) string {
	const mebibyte = 1 << 20
	stock := "Job has encountered an out-of-memory event."
	if m.limit > 0 {
		usage := max(m.peak, m.own)
		if usage <= 0 {
			usage = m.limit
		}
		stock = fmt.Sprintf("Job has gone over cgroup memory limit of %d megabytes. Last measured usage: %d megabytes.  Consider resubmitting with a higher request_memory.",
			m.limit/mebibyte, usage/mebibyte)
	}
	var more []string
	if m.own > 0 && m.own >= m.limit/2 {
		split := fmt.Sprintf("%d megabytes of it were the job's own", m.own/mebibyte)
		if m.cache >= 0 {
			split += fmt.Sprintf(" and %d megabytes file cache", m.cache/mebibyte)
		}
		more = append(more, split+fmt.Sprintf(" %d s before", int(now.Sub(m.looked).Seconds())))
	} else if m.limit > 0 {
		more = append(more, "it grew faster than it could be looked at")
	}
	requested := ad.IntOr("RequestMemory", 0)
	if requested > 0 {
		more = append(more, fmt.Sprintf("request_memory was %d", requested))
	}
	if had := max(m.limit/mebibyte, m.peak/mebibyte, requested); had > 0 && had < maxMemory {
		more = append(more, fmt.Sprintf("try request_memory = %d", suggestedMemory(had)))
	}
	if len(more) == 0 {
		return stock
	}
	return stock + " (" + strings.Join(more, "; ") + ")"
}

// maxMemory bounds what a suggestion is made from, in mebibytes: no machine has
// more.
const maxMemory = 1 << 30

// suggestedMemory is one and a half times what a job had when it was killed, in
// round megabytes: nobody knows how much more it would have taken, and a job that
// requests far too much waits long for a slot.
func suggestedMemory(had int64) int64 {
	const step = 128
	return (had*3/2 + step - 1) / step * step
}
