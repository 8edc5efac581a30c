package round

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/supply"
	"podstarter/provisioner/template"
)

// stuckAfter is how long a unit may be unable to begin before it counts as stuck: a
// scheduler or a controller that was just told needs a moment, and so does a cluster
// that adds a node. A node that cannot pull an image may have met a busy registry.
const stuckAfter = 2 * time.Minute

// updates is how long the collector may not know a pod that it knew before: after
// the collector's restart each startd comes with its next update (UPDATE_INTERVAL, 5
// minutes). Without this, jobs would get new pods beside those that have room.
const updates = 6 * time.Minute

// waits reports whether a unit cannot begin at present: no node has room for it, or
// its pod is refused.
func waits(u platform.Unit) bool {
	return u.Phase == platform.Pending && (u.Trouble == backoff.Unschedulable || u.Trouble == backoff.Denied)
}

// stuck reports whether nobody knows when a unit will begin.
func stuck(u platform.Unit, now time.Time) bool {
	return waits(u) && now.Sub(u.Created) >= stuckAfter
}

// hangs reports whether a unit has had a node for so long, and has not begun.
func hangs(u platform.Unit, within time.Duration, now time.Time) bool {
	return u.Phase == platform.Pending && !u.Placed.IsZero() && now.Sub(u.Placed) > within
}

// ails reports whether a unit has a node that cannot begin it at present: an image
// cannot be pulled, or a container cannot be made.
func ails(u platform.Unit) bool {
	return u.Phase == platform.Pending && u.Trouble != "" && !waits(u) && !u.Placed.IsZero()
}

// health follows what becomes of units, and keeps the back-off of each template and
// shape.
type health struct {
	within, begins time.Duration // for reporting, and for beginning on a node
	// templates has those of the configuration, and no other one.
	templates map[string]backoff.State
	shapes    map[string]backoff.State // those that the platform refused
	units     map[string]fate
}

// fate is what is known of one unit.
type fate struct {
	reported bool // its startd has reported at some time, or a job has begun in it
	missing  bool // it should have reported, or does so no longer
	hangs    bool // it has a node, and should have begun
	// ailing is since when it is pending and ails, perhaps with pauses: a kubelet tries
	// again. It is zero if it never did.
	ailing time.Time
	// followed: it was seen in each round since it can have reported for the first
	// time, so that it is certain whether it ever has.
	followed bool
	// missed is in how many rounds in a row it ran and had not reported, which was
	// certain; since is the first of them.
	missed int
	since  time.Time
	// slots are those that the collector knew last, and seen is when that was.
	slots *supply.Pod
	seen  time.Time
	// counted is the trouble that was counted against its template.
	counted backoff.Reason
}

func newHealth(within, begins time.Duration, templates []template.Template) *health {
	h := &health{within: within, begins: begins, templates: map[string]backoff.State{}, shapes: map[string]backoff.State{}, units: map[string]fate{}}
	for _, t := range templates {
		h.templates[t.Name] = backoff.State{}
	}
	return h
}

// change changes the back-off of a template, if it is configured.
func (h *health) change(template string, change func(backoff.State) backoff.State) {
	if s, ok := h.templates[template]; ok {
		h.templates[template] = change(s)
	}
}

// look notes what has happened to the units since the last time. After a restart
// those that ended a short while ago tell what happened before it. It returns those
// that came to nothing.
func (h *health) look(units []platform.Unit, slots map[string]*supply.Pod, now time.Time) []Failure {
	var failed []Failure
	units = slices.Clone(units)
	slices.SortStableFunc(units, func(a, b platform.Unit) int {
		return cmp.Or(when(a, now).Compare(when(b, now)), cmp.Compare(a.Name, b.Name))
	})
	there := map[string]bool{}
	for _, u := range units {
		there[u.Name] = true
		f, known := h.units[u.Name]
		f.followed = u.Phase == platform.Pending || known && f.followed
		reported := false
		// Nothing reports from a pod that does not run, whoever advertises so.
		for _, host := range u.Hosts {
			if u.Phase == platform.Pending {
				break
			}
			if s := slots[host]; s != nil {
				reported, f.slots, f.seen = true, s, now
			}
		}
		if f.seen.After(now) { // the clock was set back
			f.seen = now
		}
		// One in which a job has begun has reported, though perhaps to nobody who is here.
		if (reported || u.Use == platform.Used) && !f.reported {
			f.reported = true
			h.change(u.Template, func(s backoff.State) backoff.State { return s.Reported(when(u, now)) })
		}
		f.missing = u.Phase == platform.Running && !reported && f.late(u, h.within, now)
		f.hangs = hangs(u, h.begins, now)
		if ails(u) && (f.ailing.IsZero() || f.ailing.After(now)) {
			f.ailing = now
		}
		f.miss(u, now)
		if trouble := f.trouble(u, now); trouble != "" && trouble != f.counted && !u.Former {
			f.counted = trouble
			detail := u.Detail
			if trouble == backoff.Unstarted {
				detail = fmt.Sprintf("a node has had it since %s, and it has not begun", u.Placed.UTC().Format(time.RFC3339))
			}
			failed = append(failed, Failure{Unit: u.Name, Template: u.Template, Reason: trouble, Detail: detail})
			h.change(u.Template, func(s backoff.State) backoff.State { return s.Failed(trouble, when(u, now)) })
		}
		h.units[u.Name] = f
	}
	for name := range h.units {
		if !there[name] {
			delete(h.units, name)
		}
	}
	return failed
}

// sick reports whether the node of a unit cannot begin it, and that is not passing.
func (f fate) sick(u platform.Unit, now time.Time) bool {
	return ails(u) && !f.ailing.IsZero() && now.Sub(f.ailing) >= stuckAfter
}

// late reports whether a unit that the collector does not know should be known there.
func (f fate) late(u platform.Unit, within time.Duration, now time.Time) bool {
	if f.seen.IsZero() {
		return !u.Began.IsZero() && now.Sub(u.Began) > within
	}
	return now.Sub(f.seen) > updates
}

// when is when the trouble of a unit came.
func when(u platform.Unit, now time.Time) time.Time {
	if u.Phase == platform.Ended && !u.Ended.IsZero() && u.Ended.Before(now) {
		return u.Ended
	}
	return now
}

// trouble returns why a unit came to nothing, or an empty string. One whose slots
// have been in the pool has worked, whatever ended it: most probably it was
// preempted, or somebody deleted it.
func (f fate) trouble(u platform.Unit, now time.Time) backoff.Reason {
	switch {
	case f.reported, waits(u) && !stuck(u, now), ails(u) && !f.sick(u, now):
		return ""
	case u.Trouble != "":
		return u.Trouble
	case f.hangs:
		return backoff.Unstarted
	case f.missing:
		return backoff.Unreported
	}
	return ""
}

// denied notes that the platform refused a unit of a shape. A quota or a
// LimitRange may refuse large ones alone: those must not close the whole template
// each time that they are tried.
func (h *health) denied(shape string, now time.Time) {
	h.shapes[shape] = h.shapes[shape].Failed(backoff.Denied, now)
}

// accepted notes that the platform made a unit of a shape.
func (h *health) accepted(shape, unit string) {
	delete(h.shapes, shape)
	h.units[unit] = fate{followed: true}
}

// closed returns why no unit of a shape is tried, or an empty string.
func (h *health) closed(shape string, now time.Time) string {
	s, known := h.shapes[shape]
	if !known {
		return ""
	}
	s = s.Settled(now)
	h.shapes[shape] = s
	if n, why := s.Allowance(now); n == 0 {
		return why
	}
	return ""
}

// state returns the back-off of a template.
func (h *health) state(template string, now time.Time) backoff.State {
	s := h.templates[template].Settled(now)
	h.templates[template] = s
	return s
}

// recent returns what the collector knew of a unit a short while ago, or nil.
func (h *health) recent(unit string, now time.Time) *supply.Pod {
	f := h.units[unit]
	if f.missing || now.Sub(f.seen) > updates {
		return nil
	}
	return f.slots
}

// silent reports whether no job can be expected to begin in a unit that runs.
func (h *health) silent(unit string) bool { return h.units[unit].missing }
