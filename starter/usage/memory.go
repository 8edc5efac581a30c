package usage

import (
	"fmt"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/payload"
	"podstarter/payload/memcg"
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
	// evidence is what the watch of the latest run found; nil without one.
	evidence *memcg.Evidence
}

// noMemory is a memory that nobody has looked at.
func noMemory() memory { return memory{limit: -1, peak: -1, own: -1, cache: -1} }

// see adds one look of the wrapper's.
func (m *memory) see(c payload.CgroupUsage, at time.Time) {
	m.limit = max(m.limit, c.MemoryLimit)
	m.peak = max(m.peak, c.MemoryPeak)
	if c.MemoryUsed > m.own {
		m.own, m.cache, m.looked = c.MemoryUsed, c.MemoryCache, at
	}
}

// watched adds what a watch has found.
func (m *memory) watched(e memcg.Evidence) {
	m.evidence = &e
	m.peak = max(m.peak, e.Peak)
	if e.Limit > 0 {
		m.limit = e.Limit // it may have been changed since the wrapper looked
	}
	if own := e.Last.Own() - max(e.Base.Own(), 0); e.OOMKills > 0 && own > m.own {
		m.own, m.cache, m.looked = own, e.Last.Cache, e.Last.At
	}
}

// killed says whether the kernel is known to have killed for want of memory, and whether it
// did so for another limit than the container's: its pod's, or the machine's memory.
func (m *memory) killed() (is, elsewhere bool) {
	if m.evidence == nil || m.evidence.OOMKills <= 0 {
		return false, false
	}
	return true, m.evidence.Elsewhere
}

// withinLimit says whether the payload is known to have used less than nine
// tenths of what it may, so that others have filled the machine
// (vanilla_proc.cpp:outOfMemoryEvent).
func (m *memory) withinLimit() bool {
	if killed, elsewhere := m.killed(); killed && !elsewhere {
		return false
	}
	usage := max(m.peak, m.own)
	return m.limit > 0 && usage > 0 && usage < m.limit/10*9
}

const mebibyte = 1 << 20

// exhausted is the reason of a hold for want of memory: the sentence of the
// stock starter (vanilla_proc.cpp:outOfMemoryEvent), and what the user needs to
// know for the next try. known is the limit as the backend knows it, 0 if it does not.
func (m memory) exhausted(ad *classads.Ad, now time.Time, known int64) string {
	if m.limit <= 0 {
		m.limit = known
	}
	usage := max(m.peak, m.own)
	_, elsewhere := m.killed()
	const again = "Consider resubmitting with a higher request_memory."
	stock := "Job has encountered an out-of-memory event."
	switch {
	case elsewhere:
	case m.limit > 0 && usage > 0:
		stock = fmt.Sprintf("Job has gone over cgroup memory limit of %d megabytes. Last measured usage: %s.  %s", m.limit/mebibyte, megabytes(usage), again)
	case m.limit > 0:
		stock = fmt.Sprintf("Job has gone over cgroup memory limit of %d megabytes.  %s", m.limit/mebibyte, again)
	}
	var more []string
	if elsewhere {
		more = append(more, m.others(usage))
	}
	if split := m.split(usage, now); split != "" {
		more = append(more, split)
	}
	requested := ad.IntOr("RequestMemory", 0)
	if requested > 0 {
		more = append(more, fmt.Sprintf("request_memory was %d", requested))
	}
	p, _ := m.latest(now)
	if had := max(m.limit/mebibyte, m.peak/mebibyte, requested) + max(p.swapped, 0)/mebibyte; !elsewhere && had > 0 && had < maxMemory {
		more = append(more, fmt.Sprintf("try request_memory = %d", suggestedMemory(had)))
	}
	if len(more) == 0 {
		return stock
	}
	return stock + " (" + strings.Join(more, "; ") + ")"
}

// others says that the memory ran out somewhere else.
func (m memory) others(usage int64) string {
	text := "its pod or its machine ran out of memory"
	if usage > 0 {
		text += " when the job had used " + megabytes(usage)
	}
	if m.limit > 0 {
		text += fmt.Sprintf(", less than its own limit of %d megabytes", m.limit/mebibyte)
	}
	return text
}

// portions are what memory was made of at one look, in bytes. all includes what was there
// before the job.
type portions struct{ all, own, shared, cache, kernel, swapped int64 }

// latest are the portions of the last look before the kill, and how long before that was.
func (m memory) latest(now time.Time) (p portions, before time.Duration) {
	e := m.evidence
	if e == nil || e.Last.At.IsZero() {
		return portions{all: m.own + max(m.cache, 0), own: m.own, cache: m.cache}, now.Sub(m.looked)
	}
	l := e.Last
	own := max(l.Own()-max(e.Base.Own(), 0), 0)
	all := max(l.Own(), 0) + max(l.Cache, 0) + max(l.Kernel, 0)
	return portions{all, own, min(l.Shared, own), l.Cache, l.Kernel, l.Swap}, e.End.Sub(l.At)
}

// split says what the memory was made of shortly before the kill, if that was looked at.
func (m memory) split(usage int64, now time.Time) string {
	p, before := m.latest(now)
	if p.own < 0 {
		if m.limit <= 0 {
			return ""
		}
		return "it was killed before anybody could look at its memory"
	}
	if usage > 0 && p.all < usage/10*9 {
		const text = "it grew faster than it could be looked at"
		if before <= 0 {
			return text // and had given memory back already
		}
		return text + fmt.Sprintf(", and had used %s %s", megabytes(p.all), ago(before))
	}
	text := megabytes(p.own) + " of it were the job's own"
	if p.shared >= mebibyte {
		text += fmt.Sprintf(" (%s in shared memory, /dev/shm for example)", megabytes(p.shared))
	}
	if p.cache >= mebibyte {
		text += " and " + megabytes(p.cache) + " file cache"
	}
	if p.kernel >= mebibyte && p.kernel > usage/10 {
		text += " and " + megabytes(p.kernel) + " the kernel's for it"
	}
	text += " " + ago(before)
	if p.swapped >= mebibyte {
		text += ", with " + megabytes(p.swapped) + " more swapped out"
	}
	return text
}

// megabytes is an amount of memory in the unit of request_memory.
func megabytes(bytes int64) string {
	if bytes < mebibyte {
		return "less than 1 megabyte"
	}
	return fmt.Sprintf("%d megabytes", bytes/mebibyte)
}

// ago is how long before the kill something was.
func ago(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "when it was killed"
	case d < time.Second:
		return fmt.Sprintf("%d ms before", d.Milliseconds())
	default:
		return fmt.Sprintf("%d s before", int(d.Seconds()))
	}
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
