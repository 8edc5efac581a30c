package round

import (
	"context"
	"errors"
	"fmt"
	"time"

	"podstarter/provisioner/platform"
)

// follow notes what has become of the units.
func (r *Round) follow(s sight, now time.Time) []Failure {
	if s.unread {
		r.health.blind()
	}
	return r.health.look(s.units, s.slots, now)
}

// endUnreported ends units that run and have never reported. It reports whether the
// round may go on.
func (r *Round) endUnreported(ctx context.Context, rep *Report) bool {
	e, can := r.platform.(platform.Ender)
	if !can {
		return true
	}
	after, failures := map[string]time.Duration{}, 0
	for _, t := range r.config.Templates {
		after[t.Name] = t.EndUnreported
	}
	for _, u := range rep.Units {
		if failures == maxFailures {
			break
		}
		if !r.health.unreported(u, after[u.Template], rep.At) {
			continue
		}
		err := r.call(ctx, func(ctx context.Context) error { return e.End(ctx, u.Name) })
		if err == nil {
			rep.Removed = append(rep.Removed, u.Name)
			continue
		}
		if errors.Is(err, platform.ErrBegun) { // a job has begun there meanwhile
			continue
		}
		rep.note(Withdrawing, fmt.Errorf("ending %s, which has never reported to the collector: %w", u.Name, err))
		if failures++; stopped(err) {
			return false
		}
	}
	return true
}

// blind notes that a round did not know all that there is: a unit may have reported
// meanwhile, and be known no longer.
func (h *health) blind() {
	for name, f := range h.units {
		f.followed, f.missed = false, 0
		h.units[name] = f
	}
}

// missedOften is in how many rounds a unit must be missed: the collector may just
// have started anew.
const missedOften = 3

// miss notes whether a unit is silent in this round.
func (f *fate) miss(u platform.Unit, now time.Time) {
	switch {
	case u.Phase != platform.Running || u.Leaving || f.reported || !f.followed && u.Use != platform.Unused:
		f.missed, f.since = 0, time.Time{}
		return
	case f.missed == 0 || f.since.After(now):
		f.missed, f.since = 0, now
	}
	f.missed++
}

// unreported reports whether it is certain that a unit has run for so long and has
// never had a job. When it began is said by the clock of its node, which may be wrong,
// so the time in which it was missed here counts as well. A unit that was not followed
// all the time, such as one that ran before a restart, may have reported: the platform
// must know that no job has begun there, and the collector must have had the time to
// know it again.
func (h *health) unreported(u platform.Unit, after time.Duration, now time.Time) bool {
	f := h.units[u.Name]
	missed := after
	if !f.followed {
		missed = min(after, updates)
	}
	return after > 0 && f.missing && f.missed >= missedOften && now.Sub(f.since) >= missed && now.Sub(u.Began) > after
}
