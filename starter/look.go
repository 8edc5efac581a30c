package main

import (
	"context"
	"time"

	"podstarter/payload"
	"podstarter/payload/proctable"
)

// A payload of thousands of processes, or one that leaves no CPU time to others, makes
// a look at it last as long as it likes.
const (
	// wordTime bounds the wait for the wrapper's answer, tableTime the starter's own look.
	wordTime  = 5 * time.Second
	tableTime = 5 * time.Second
	// lastLookTime is how long a job that has ended waits for the look that goes on.
	lastLookTime = time.Second
)

// asker answers how much the payload uses.
type asker interface {
	Usage(ctx context.Context) (payload.ContainerUsage, error)
}

// look asks the wrapper, which knows the container's cgroup, and where the
// starter sees the payload's processes itself, its own table of them; table is
// nil where it does not. Who comes while another looks is content with what that one
// sees.
func (m *meter) look(ctx context.Context, client asker, table *proctable.Table) {
	if !m.lookIfIdle(ctx, client, table) {
		m.looking.Lock()
		defer m.looking.Unlock()
	}
}

// lookIfIdle is look, but for who need not know: it is left out while another looks.
func (m *meter) lookIfIdle(ctx context.Context, client asker, table *proctable.Table) bool {
	if !m.looking.TryLock() {
		return false
	}
	defer m.looking.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m.mu.Lock()
	over := m.over
	m.stop = stop
	m.mu.Unlock()
	if over {
		return true
	}
	asking, answered := context.WithTimeout(ctx, wordTime)
	usage, err := client.Usage(asking)
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
	snapshot, err := table.Snapshot(looking, proctable.Detail{PSS: m.pss, IO: true})
	looked()
	switch {
	case err == nil:
		m.seenInTable(snapshot)
	case ctx.Err() == nil:
		m.log.Warn("The payload's processes cannot be looked at, only the wrapper's word counts", "error", err)
	}
	return true
}

// halt cuts the look short that goes on, and there are no others before begin.
func (m *meter) halt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
	if m.stop != nil {
		m.stop()
	}
}

// crowd is how many processes and threads the payload had at the last look.
func (m *meter) crowd() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tasks
}
