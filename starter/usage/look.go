package usage

import (
	"context"
	"time"

	"podstarter/payload"
	"podstarter/payload/proctable"
)

// A payload of thousands of processes, or one that leaves others no CPU time, can
// make a look at it last very long.
const (
	// answerTime bounds the wait for the wrapper's answer, tableTime the starter's
	// own look at the processes.
	answerTime = 5 * time.Second
	tableTime  = 5 * time.Second
	// lastLookTime is how long a job that has ended waits for the look that goes on.
	lastLookTime = time.Second
)

// Wrapper answers how much the payload uses.
type Wrapper interface {
	Usage(ctx context.Context) (payload.ContainerUsage, error)
}

// Look asks the wrapper, which knows the container's cgroup, and reads the starter's
// own table of the payload's processes; table is nil where the starter does not see
// them. While another goroutine looks, Look waits for what that one sees.
func (m *Meter) Look(ctx context.Context, w Wrapper, table *proctable.Table) {
	if !m.LookIfIdle(ctx, w, table) {
		m.looking.Lock()
		defer m.looking.Unlock()
	}
}

// LookIfIdle is Look for a caller who need not know: it does nothing and returns
// false while another goroutine looks.
func (m *Meter) LookIfIdle(ctx context.Context, w Wrapper, table *proctable.Table) bool {
	if !m.looking.TryLock() {
		return false
	}
	defer m.looking.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m.mu.Lock()
	halted := m.halted
	m.stopLook = stop
	m.mu.Unlock()
	if halted {
		return true
	}
	asking, answered := context.WithTimeout(ctx, answerTime)
	usage, err := w.Usage(asking)
	answered()
	if err != nil {
		m.log.Debug("No usage from the wrapper", "error", err)
	} else {
		m.seen(usage)
	}
	if table == nil || ctx.Err() != nil {
		return true
	}
	looking, looked := context.WithTimeout(ctx, tableTime)
	snapshot, err := table.Snapshot(looking, proctable.Detail{PSS: m.knobs.PSS, IO: true})
	looked()
	switch {
	case err == nil:
		m.seenInTable(snapshot)
	case ctx.Err() == nil:
		m.log.Warn("Cannot look at the payload's processes; only the wrapper measures them", "error", err)
	}
	return true
}

// HaltSoon gives the look that goes on a second to end; halt does not wait so long.
// After that, looks see nothing until the next Begin. halt must be called.
func (m *Meter) HaltSoon() (halt func()) {
	last := time.AfterFunc(lastLookTime, m.halt)
	return func() {
		last.Stop()
		m.halt()
	}
}

// halt cuts the current look short, and allows no others before Begin.
func (m *Meter) halt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.halted = true
	if m.stopLook != nil {
		m.stopLook()
	}
}
