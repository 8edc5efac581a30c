package report

import (
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/starter/journal"
)

// running are the jobs that have begun and not ended, by the process ID of their starters.
type running map[int]journal.Event

// take takes note of an event. If it is of another starter with the process ID of one that
// has not ended, that one died; take gives its end.
func (r running) take(e journal.Event) []journal.Event {
	before, ok := r[e.PID]
	switch e.Kind {
	case journal.JobBegins:
		if r[e.PID] = e; ok {
			return []journal.Event{lostEnd(before)}
		}
	case journal.JobEnds:
		delete(r, e.PID)
	}
	return nil
}

// looks say of starters whether they were there.
type looks map[int]struct {
	began time.Time // of the job; later ones were not looked at
	there bool
}

// look says which starters are there. It must be asked before the journal is read: then a
// starter that is not there has written all that it ever will. If gone, all are of an earlier
// pilot: they died with its container, and others may have their process IDs.
func (r running) look(gone bool) looks {
	out := make(looks, len(r))
	for pid, e := range r {
		l := out[pid]
		l.began, l.there = e.Time, !gone && isAlive(pid)
		out[pid] = l
	}
	return out
}

func isAlive(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// lost removes the jobs whose starters died without a word, and gives their ends.
func (r running) lost(l looks) []journal.Event {
	var out []journal.Event
	for _, pid := range slices.Sorted(maps.Keys(r)) {
		if seen, ok := l[pid]; !ok || seen.there || !seen.began.Equal(r[pid].Time) {
			continue
		}
		out = append(out, lostEnd(r[pid]))
		delete(r, pid)
	}
	return out
}

// lostEnd is the end of a job whose starter died.
func lostEnd(e journal.Event) journal.Event {
	return journal.Event{
		Time: time.Now(), Kind: journal.JobEnds, PID: e.PID, Job: e.Job, Owner: e.Owner, Slot: e.Slot, SubmitHost: e.SubmitHost,
		Outcome: journal.Lost, Seconds: time.Since(e.Time).Seconds(),
		Reason: "the starter died; its StarterLog, or the kernel's log if memory ran out, says more",
	}
}
