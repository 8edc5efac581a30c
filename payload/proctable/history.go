package proctable

import (
	"sync"
	"time"

	"podstarter/payload/procfamily"
)

// cpu is CPU time in clock ticks.
type cpu struct{ user, system uint64 }

func (a cpu) plus(b cpu) cpu { return cpu{a.user + b.user, a.system + b.system} }

func (a cpu) max(b cpu) cpu { return cpu{max(a.user, b.user), max(a.system, b.system)} }

// since is a minus b, or 0 where b is larger.
func (a cpu) since(b cpu) cpu {
	return cpu{a.user - min(a.user, b.user), a.system - min(a.system, b.system)}
}

// identity identifies a process for good.
type identity struct {
	pid   int
	start uint64
}

// history remembers the usage seen of each process, so that its end does not remove it from
// the sums.
//
// The CPU time of a dead process is in one of three places: with the ancestor that waited
// for it (cutime and cstime in /proc/PID/stat), with the wrapper, which waits for orphans,
// or, if its parent ignores SIGCHLD, nowhere. Therefore it keeps two sums: one by
// ancestors, complete except for the last case, and one of what was seen of each process.
// Neither counts anything twice, so the larger one is closer to the truth.
type history struct {
	mu     sync.Mutex
	base   cpu // of the wrapper, when the table was made
	living map[identity]seen
	gone   seen // sums over processes that have ended
	total  cpu  // highest so far
}

// seen is the usage of a process itself.
type seen struct {
	cpu         cpu
	read, write int64
}

func newHistory(base cpu) *history {
	return &history{base: base, living: make(map[identity]seen)}
}

// add records a look and completes the snapshot with the sums.
func (h *history) add(s *Snapshot, all []procfamily.Process, reaped cpu, withIO bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	byAncestors := reaped.since(h.base)
	now := make(map[identity]seen, len(all))
	for _, p := range all {
		own := cpu{p.UserTicks, p.SystemTicks}
		byAncestors = byAncestors.plus(own).plus(cpu{p.WaitedUserTicks, p.WaitedSystemTicks})
		id := identity{p.PID, p.Start}
		last := h.living[id]
		last.cpu = own
		now[id] = last
	}
	for _, p := range s.Processes {
		id := identity{p.PID, p.Start}
		last := now[id]
		last.read, last.write = max(last.read, p.ReadBytes), max(last.write, p.WriteBytes)
		now[id] = last
	}
	for id, last := range h.living {
		if _, alive := now[id]; !alive {
			h.gone.add(last)
		}
	}
	h.living = now
	sum := h.gone
	for _, last := range now {
		sum.add(last)
	}
	h.total = h.total.max(byAncestors).max(sum.cpu)
	s.UserCPU = time.Duration(h.total.user) * tick
	s.SystemCPU = time.Duration(h.total.system) * tick
	if withIO {
		s.ReadBytes, s.WriteBytes = sum.read, sum.write
	}
}

func (s *seen) add(o seen) {
	s.cpu = s.cpu.plus(o.cpu)
	s.read += o.read
	s.write += o.write
}
