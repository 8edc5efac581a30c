package round

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"podstarter/provisioner/platform"
	"podstarter/provisioner/supply"
)

// follow notes what has become of the units.
func (r *Round) follow(s sight, now time.Time) []Failure {
	if s.unread {
		r.health.blind()
	}
	return r.health.look(s.units, s.slots, now)
}

// Silent is a unit that has run for long and has never reported.
type Silent struct {
	Unit  string
	Began time.Time
	// Ends: it is ended now. If not, it is ended once the collector has not known it for
	// the time Missed.
	Ends   bool
	Missed time.Duration
}

// silent returns the units that have run for long and have never reported, as far as
// they can be ended.
func (r *Round) silent(rep *Report) (all []Silent) {
	if _, can := r.platform.(platform.Ender); !can {
		return nil
	}
	after := map[string]time.Duration{}
	for _, t := range r.config.Templates {
		after[t.Name] = t.EndUnreported
	}
	for _, u := range rep.Units {
		if s, is := r.health.unreported(u, after[u.Template], rep.At); is {
			all = append(all, s)
		}
	}
	return all
}

// freshFor is how long what the collector has said of silent units counts while they
// are ended. Between a slot's first ad and its first job is a negotiation.
const freshFor = 10 * time.Second

// endUnreported ends units that run and have never reported. It reports whether the
// round may go on.
func (r *Round) endUnreported(ctx context.Context, rep *Report) bool {
	e, can := r.platform.(platform.Ender)
	if !can {
		return true
	}
	hosts := map[string][]string{}
	for _, u := range rep.Units {
		hosts[u.Name] = u.Hosts
	}
	failures := 0
	var slots map[string]*supply.Pod
	var asked time.Time
	for _, s := range rep.Silent {
		if failures == maxFailures {
			break
		}
		if !s.Ends {
			continue
		}
		// The round asked for its slots minutes ago, if schedds are slow, and each call of
		// the platform may take seconds: a job may run by now in one that has come since.
		if now := r.config.Now(); slots == nil || now.Sub(asked) > freshFor || now.Before(asked) {
			var err error
			if slots, err = r.pool.Slots(ctx); err != nil {
				rep.note(Collector, err)
				return true
			}
			asked = now
		}
		if slices.ContainsFunc(hosts[s.Unit], func(host string) bool { return slots[host] != nil }) {
			continue
		}
		err := r.call(ctx, func(ctx context.Context) error { return e.End(ctx, s.Unit) })
		if err == nil {
			rep.Removed = append(rep.Removed, s.Unit)
			continue
		}
		if errors.Is(err, platform.ErrBegun) { // a job has begun there meanwhile
			continue
		}
		rep.note(Withdrawing, fmt.Errorf("ending %s, which has never reported to the collector: %w", s.Unit, err))
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

// unreported reports whether a unit has run for so long and has never reported, as far
// as is known here. It is ended if it is certain that it has never had a job. When it
// began is said by the clock of its node, which may be wrong, so the time in which it
// was missed here counts as well. A unit that was not followed all the time, such as
// one that ran before a restart, may have reported: the platform must know that no job
// has begun there, and the collector must have had the time to know it again.
func (h *health) unreported(u platform.Unit, after time.Duration, now time.Time) (Silent, bool) {
	f := h.units[u.Name]
	if after <= 0 || u.Leaving || !f.missing || f.reported || now.Sub(u.Began) <= after {
		return Silent{}, false
	}
	s := Silent{Unit: u.Name, Began: u.Began, Missed: after}
	if !f.followed && u.Use == platform.Unused {
		s.Missed = min(after, updates)
	}
	s.Ends = f.missed >= missedOften && now.Sub(f.since) >= s.Missed
	return s, true
}
