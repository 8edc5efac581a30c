package round

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/match"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/template"
)

const (
	// learnEvery is how often slots are asked for all that they advertise. It changes
	// with a new version or configuration of the pods.
	learnEvery = 10 * time.Minute
	// learnSoon is how soon after a look those are asked of which nothing is known.
	learnSoon = time.Minute
	// unlearnFor is how long nothing is learnt after what was learnt made too many
	// groups of jobs.
	unlearnFor = time.Hour
	// mostAds is how many slots are asked at a time, and how many ads are kept.
	mostAds = 100
)

// ads has what slots of pods advertise, for each shape the ad of one slot.
type ads struct {
	seen map[int]*template.Seen // by index of the shape
	at   time.Time              // when they were asked for
	next time.Time              // when nothing was asked before
}

// references returns the attributes of jobs to which the slots refer.
func (a *ads) references() []string {
	var names []string
	for _, s := range a.seen {
		names = append(names, s.References...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// learnAds asks what the slots of pods advertise, if it is time for that. It reports
// whether something has changed.
func (r *Round) learnAds(ctx context.Context, s sight, rep *Report) (changed bool) {
	a, now := &r.ads, rep.At
	if a.at.After(now) { // the clock was set back
		a.at, a.next = time.Time{}, time.Time{}
	}
	changed = a.age(now)
	if now.Before(a.next) {
		return changed
	}
	// The newest pod of each shape has the newest configuration.
	type source struct {
		slot  string
		began time.Time
	}
	sources := map[int]source{}
	for _, u := range s.units {
		shape := r.find(u)
		if shape < 0 || u.Phase != platform.Running {
			continue
		}
		for _, host := range u.Hosts {
			p := s.slots[host]
			if p != nil && !p.Draining && p.Slot != "" && (sources[shape].slot == "" || u.Began.After(sources[shape].began)) {
				sources[shape] = source{p.Slot, u.Began}
			}
		}
	}
	due := now.Sub(a.at) >= learnEvery
	var wanted []string
	byName := map[string]int{}
	for i := range r.shapes {
		from, there := sources[i]
		if there && (due || a.seen[i] == nil) && len(wanted) < mostAds {
			wanted = append(wanted, from.slot)
			byName[from.slot] = i
		}
	}
	if len(wanted) == 0 {
		return changed
	}
	a.next = now.Add(learnSoon)
	if due {
		a.at = now
	}
	found, err := r.pool.Ads(ctx, wanted)
	rep.note(Collector, err)
	for name, ad := range found {
		i, asked := byName[name]
		if !asked || a.seen[i] == nil && len(a.seen) >= mostAds {
			continue
		}
		seen, err := template.Learn(ad, r.shapes[i].Name, now)
		if errors.Is(err, template.ErrEnds) {
			continue
		}
		if err != nil {
			rep.note(Collector, fmt.Errorf("learning from the slot %s: %w", name, err))
			continue
		}
		changed = changed || a.seen[i] == nil || a.seen[i].Old || a.seen[i].Digest != seen.Digest
		if a.seen == nil {
			a.seen = map[int]*template.Seen{}
		}
		a.seen[i] = seen
	}
	return changed
}

// age notes of which shapes no slot has been seen for long. It reports whether there is
// a new one.
func (a *ads) age(now time.Time) (changed bool) {
	for _, s := range a.seen {
		if s.At.After(now) { // the clock was set back
			s.At = now
		}
		if !s.Old && now.Sub(s.At) > backoff.Forget {
			s.Old, changed = true, true
		}
	}
	return changed
}

// unlearn drops what was learnt if it made too many groups of jobs: then jobs that
// are there would not be seen.
func (r *Round) unlearn(err error, now time.Time) {
	if errors.Is(err, demand.ErrTooMuch) && len(r.ads.references()) > 0 {
		r.ads = ads{next: now.Add(unlearnFor), at: now}
		r.offers = r.offer()
	}
}

// offer returns the slots of the shapes, as pods advertise them.
func (r *Round) offer() []match.Slot {
	all := make([]match.Slot, len(r.shapes))
	for i, s := range r.shapes {
		all[i] = s.slot
		seen := r.ads.seen[i]
		for o := range r.shapes {
			if seen == nil && r.shapes[o].template == s.template {
				seen = r.ads.seen[o]
			}
		}
		if seen != nil {
			all[i].ID += "#" + seen.Shape + "#" + seen.Digest
			if seen.Old {
				all[i].ID += "#old"
			}
		}
		if s.promise != s.Shape {
			all[i].ID += "#" + s.promise.Pod.String()
		}
		if all[i].ID != s.slot.ID {
			all[i].Ad = r.config.Templates[s.template].Slot(s.promise, seen)
		}
	}
	return all
}
