package round

import (
	"time"

	"podstarter/provisioner/decision"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/runtimes"
	"podstarter/provisioner/supply"
)

// input puts together what the decision depends on.
func (r *Round) input(s sight, rep Report) decision.Input {
	in := decision.Input{
		Now: rep.At, Limits: r.config.Limits, Policy: r.config.Policy, Memory: r.memory,
		Partial: s.partial, Users: map[string]decision.User{},
	}
	for _, t := range r.config.Templates {
		state := r.health.state(t.Name, rep.At)
		d := decision.Template{Name: t.Name, MaxPods: t.MaxPods, MaxComing: t.MaxComing}
		d.Allowance, d.AllowanceWhy = state.Allowance(rep.At)
		if most, why := r.takers.template(t.Name, rep.At); most >= 0 && most < d.Allowance {
			d.Allowance, d.AllowanceWhy = most, why
		}
		in.Templates = append(in.Templates, d)
	}
	for _, s := range r.shapes {
		in.Shapes = append(in.Shapes, decision.Shape{Template: s.template, Name: s.Name, Size: s.promise.Pod, MaxPods: s.MaxPods, Lifetime: s.Lifetime, Closed: r.closed(s, rep.At)})
	}
	for name, u := range s.users {
		in.Users[name] = u
	}
	for _, g := range s.groups {
		group := decision.Group{ID: g.ID, Runtime: r.runtimes.Runtime(g.ID)}
		for _, p := range g.Parts {
			group.Submitters = append(group.Submitters, decision.Submitter{User: p.User, Owner: p.Owner, Idle: p.Idle})
		}
		in.Groups = append(in.Groups, group)
	}
	turns := map[string]func(group string) (most int, why string){} // by template
	for _, t := range r.config.Templates {
		turns[t.Name] = r.takers.turns(t.Name, rep.Groups, rep.At)
	}
	for g, row := range rep.Matches {
		var fits []decision.Fit
		for i, m := range row {
			if m.Matches {
				s := r.shapes[i]
				request := r.config.Templates[s.template].Request(s.promise, m.Request)
				fit := decision.Fit{Shape: i, Request: request, Rank: m.Rank}
				if s.Size.GPUs > 0 && m.Request.GPUs == 0 {
					fit.NotFor = "pods with GPUs are made for jobs that request GPUs"
				}
				if most, why := r.takers.group(rep.Groups[g].ID, r.config.Templates[s.template].Name, rep.At); most >= 0 {
					fit.Bounded, fit.Most, fit.Why = true, most, why
				}
				if most, why := turns[r.config.Templates[s.template].Name](rep.Groups[g].ID); most >= 0 && (!fit.Bounded || most < fit.Most) {
					fit.Bounded, fit.Most, fit.Why = true, most, why
				}
				fits = append(fits, fit)
			}
		}
		in.Fits = append(in.Fits, fits)
	}
	for _, u := range s.units {
		if u.Phase == platform.Ended {
			continue
		}
		in.Pods = append(in.Pods, r.pod(u, s.slots, rep.At))
		user := in.Users[u.User]
		user.Pods++
		in.Users[u.User] = user
	}
	return in
}

// closed says why no unit of a shape is tried. What is refused in a size is refused
// in each that is not smaller.
func (r *Round) closed(s shape, now time.Time) string {
	for _, o := range r.shapes {
		if o.template == s.template && s.Pod.Fits(o.Pod) {
			if why := r.health.closed(o.slot.ID, now); why != "" {
				return why
			}
		}
	}
	return ""
}

// pod says what a unit has for jobs.
func (r *Round) pod(u platform.Unit, slots map[string]*supply.Pod, now time.Time) decision.Pod {
	p := decision.Pod{ID: u.Name, Shape: r.find(u), Created: u.Created, Stuck: stuck(u, now)}
	if hangs(u, r.health.begins, now) || r.health.units[u.Name].sick(u, now) {
		p.Stuck, p.Placed = true, true
	}
	useless := u.Former && u.Phase == platform.Pending && (p.Stuck || u.Trouble != "" && !waits(u))
	if useless {
		p.Stuck, p.Placed = true, true // one that is made now may be better off
	}
	if p.Shape >= 0 && !useless {
		p.Free = r.shapes[p.Shape].promise.Pod
		if u.Size != (resources.Amount{}) && u.Size != r.shapes[p.Shape].Size { // it was made before a change
			old := resources.Amount{Payloads: p.Free.Payloads}
			for range r.config.Templates[r.shapes[p.Shape].template].Slots {
				old = old.Plus(u.Size)
			}
			p.Free = p.Free.Least(old)
		}
	}
	if p.Shape >= 0 && r.shapes[p.Shape].Lifetime > 0 && !u.Began.IsZero() {
		p.Until = u.Began.Add(r.shapes[p.Shape].Lifetime)
	}
	if u.Leaving {
		p.Phase = decision.Ending
		return p
	}
	if u.Phase == platform.Pending {
		return p
	}
	p.Phase = decision.Starting
	known, draining := false, false
	seen := make([]*supply.Pod, 0, 1)
	for _, host := range u.Hosts {
		if slot := slots[host]; slot != nil {
			seen = append(seen, slot)
		}
	}
	if slot := r.health.recent(u.Name, now); len(seen) == 0 && slot != nil {
		seen = append(seen, slot)
	}
	for _, slot := range seen {
		if !known {
			p.Free = resources.Amount{}
		}
		p.Free = p.Free.Plus(slot.Free)
		known, draining = true, draining || slot.Draining
		for _, rest := range slot.Rests {
			if rest.Until.After(now) {
				p.Claims = append(p.Claims, decision.Claim{Amount: rest.Amount, Until: rest.Until})
			} else {
				p.Free = p.Free.Plus(rest.Amount)
			}
		}
		for _, c := range slot.Claims {
			p.Claims = append(p.Claims, decision.Claim{Amount: c.Amount, Until: r.runtimes.Until(runtimes.Job{ID: c.Job, Began: c.Began})})
		}
	}
	if p.Shape >= 0 {
		// A slot that claims to be larger than its pod lies, or counts what is the node's.
		p.Free = p.Free.Least(r.shapes[p.Shape].Pod)
	}
	switch {
	case draining:
		p.Phase = decision.Ending
	case known:
		p.Phase = decision.Reported
	case r.health.silent(u.Name):
		// It reported before, or it should have. No job will begin there.
		p.Phase = decision.Ending
	}
	return p
}

// find returns the index of a unit's shape, or -1 if it is no longer configured.
func (r *Round) find(u platform.Unit) int {
	for i, s := range r.shapes {
		if r.config.Templates[s.template].Name == u.Template && s.Name == u.Shape {
			return i
		}
	}
	return -1
}
