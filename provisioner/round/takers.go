package round

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/supply"
	"podstarter/provisioner/template"
)

// A job and a slot that match by what is known here may not match in the pool: a
// slot's ad says what is not so, a quota or a limit of the accountant keeps the job
// idle, or the site's words of a slot are wrong. Then pods come, wait for a job and
// end, while the job stays idle. Without a bound the next round would make the next
// pod for it.
const (
	// takeWithin is how long a slot of a new pod may be free while the jobs for which
	// it was made are idle: several cycles of the negotiator.
	takeWithin = 5 * time.Minute
	// takeAtLeast is how long it must have been so in a pod that ended sooner.
	takeAtLeast = 2 * time.Minute
	// endSoon is how many pods of a pair may end one after another before a job could
	// have taken them: a few are preempted.
	endSoon = backoff.Proof
	// inARow is how many pods of a template may be left without a job one after
	// another, whatever groups they were made for.
	inARow = 20
	// mostPairs bounds what is remembered.
	mostPairs = 50_000
)

// pair is a group of jobs and a template.
type pair struct{ group, template string }

// takers follows whether the jobs take the pods that are made for them.
type takers struct {
	pairs map[pair]*trials
	rows  map[string]*row // by template; those of the configuration, and no other one
	// guests has the same of groups of other pools' schedds: pods that those do not take
	// must not keep this pool's jobs waiting.
	guests map[string]*row
	units  map[string]*offer
	first  time.Time // when units were looked at for the first time
}

func newTakers(templates []template.Template) takers {
	k := takers{pairs: map[pair]*trials{}, rows: map[string]*row{}, guests: map[string]*row{}, units: map[string]*offer{}}
	for _, t := range templates {
		k.rows[t.Name], k.guests[t.Name] = &row{}, &row{}
	}
	return k
}

// trials is what became of the pods that were made for a pair.
type trials struct {
	state backoff.State
	seen  time.Time
	open  int // pods that are there, and no job has taken one
	soon  int // pods that ended soon, one after another
}

// row is how many pods of a template no job has taken, one after another. Other users'
// jobs may take the next one: what keeps these from it may be a quota.
type row struct {
	left, open int
	state      backoff.State
	// users are those for whose jobs the pods were made.
	users map[string]bool
}

// maxUsers bounds them.
const maxUsers = 10_000

// offer is a unit's fate with the jobs.
type offer struct {
	pair
	user    string    // for whose job it was made
	since   time.Time // when it was first seen free while its jobs were idle; zero if that is not so
	taken   bool      // a job has taken it at some time
	now     bool      // that is new
	known   bool      // the collector knew it at some time
	ended   bool
	counted bool
}

// look notes what has become of the units since the last time.
func (k *takers) look(units []platform.Unit, slots map[string]*supply.Pod, groups []demand.Group, now time.Time) {
	idle := map[string]bool{}
	for _, g := range groups {
		idle[g.ID] = true
	}
	for _, t := range k.pairs {
		t.open = 0
	}
	for name, r := range k.rows {
		r.open, k.guests[name].open = 0, 0
	}
	if k.first.IsZero() {
		k.recall(units, idle, now)
	}
	if k.first.IsZero() || k.first.After(now) {
		k.first = now
	}
	there := map[string]bool{}
	for _, u := range units {
		if k.rows[u.Template] == nil {
			continue
		}
		o := k.units[u.Name]
		if o == nil {
			if u.Phase == platform.Ended && u.Created.Before(k.first) {
				continue // nobody was here to see what became of it
			}
			o = &offer{pair: pair{u.Group, u.Template}, user: u.User}
			k.units[u.Name] = o
		}
		there[u.Name] = true
		free := false
		o.now = o.now || u.Use == platform.Used
		for _, host := range u.Hosts {
			if p := slots[host]; p != nil && u.Phase != platform.Pending {
				o.now = o.now || len(p.Claims) > 0 || p.Started > 0
				free, o.known = true, true
			}
		}
		if u.Phase == platform.Ended {
			k.end(o, u, idle[o.group], now)
		} else {
			k.follow(o, free && idle[o.group], now)
		}
	}
	for name, o := range k.units {
		if there[name] {
			continue
		}
		if !o.ended && o.freeFor(takeAtLeast, now) && idle[o.group] {
			k.leave(o, now)
		}
		delete(k.units, name)
	}
	maps.DeleteFunc(k.pairs, func(_ pair, t *trials) bool {
		return t.open == 0 && (now.Sub(t.seen) > backoff.Forget || t.seen.After(now))
	})
}

// follow notes what a unit that is there does. waits says that it is free, and jobs
// for which it was made are idle.
func (k *takers) follow(o *offer, waits bool, now time.Time) {
	r, t := k.row(o.pair), k.trials(o.pair, now)
	k.take(o, now)
	if o.taken {
		if t != nil && t.state.Failures == 0 {
			t.state.LastReport = now
		}
		return
	}
	if demand.Flocked(o.group) || r.users[o.user] || r.users[""] {
		r.open++
	}
	if t != nil {
		t.open++
	}
	switch {
	case !waits || o.since.After(now): // or the clock was set back
		o.since = time.Time{}
	case o.since.IsZero():
		o.since = now
	case now.Sub(o.since) >= takeWithin:
		k.leave(o, now)
	}
}

// trials are those of a pair; nil if there are too many.
func (k *takers) trials(p pair, now time.Time) *trials {
	t := k.pairs[p]
	if t == nil && len(k.pairs) < mostPairs {
		t = &trials{}
		k.pairs[p] = t
	}
	if t != nil {
		t.seen = now
	}
	return t
}

// take notes the first job of a unit. It says nothing of units that came later: it
// counts once, and after that only as long as nothing else is known.
func (k *takers) take(o *offer, now time.Time) {
	if !o.now || o.taken {
		return
	}
	o.taken = true
	r := k.row(o.pair)
	*r = row{open: r.open}
	if t := k.pairs[o.pair]; t != nil {
		t.state, t.soon = t.state.Reported(now), 0
	}
}

// freeFor reports whether a unit has been free for so long while its jobs were idle.
func (o *offer) freeFor(long time.Duration, now time.Time) bool {
	return !o.since.IsZero() && now.Sub(o.since) >= long
}

// end notes the end of a unit. waits says that jobs for which it was made are idle.
// One that ends as soon as it has reported, or without having done so, leaves them
// where they are as one does that waits in vain.
func (k *takers) end(o *offer, u platform.Unit, waits bool, now time.Time) {
	if o.ended {
		return
	}
	o.ended = true
	t := k.trials(o.pair, now)
	k.take(o, now)
	switch {
	case o.taken, !waits, u.Leaving:
	case o.freeFor(takeAtLeast, now):
		k.leave(o, now)
	case u.Trouble != "" && !o.known: // it has failed (health)
	case t == nil:
		k.leave(o, now)
	default:
		if t.soon++; t.soon >= endSoon {
			k.leave(o, now)
		}
	}
}

// leave notes that no job has taken a unit.
func (k *takers) leave(o *offer, now time.Time) {
	if o.taken || o.counted {
		return
	}
	o.counted = true
	if t := k.pairs[o.pair]; t != nil {
		t.state = t.state.Failed(backoff.Untaken, now)
	}
	r := k.row(o.pair)
	if r.users == nil {
		r.users = map[string]bool{}
	}
	if len(r.users) < maxUsers {
		r.users[o.user] = true
	}
	if r.left++; r.left >= inARow {
		r.state = r.state.Failed(backoff.Untaken, now)
	}
}

// group says how many pods of a template may be made for a group, and why not more. A
// negative number stands for any number.
func (k *takers) group(group, template string, now time.Time) (most int, why string) {
	t := k.pairs[pair{group, template}]
	switch {
	case t == nil:
		return backoff.Trial, fmt.Sprintf("until a job of this group has taken a pod of %s, at most %d are tried", template, backoff.Trial)
	case t.state.Failures > 0:
		t.state = t.state.Settled(now)
		n, _ := t.state.Allowance(now)
		why = fmt.Sprintf("pods of %s came for these jobs and none of the jobs took one (%d times in a row), though they match by what is known here: compare with condor_q -better-analyze, and look for quotas and limits", template, t.state.Failures)
		if t.soon >= endSoon {
			why = fmt.Sprintf("the last %d pods of %s for these jobs ended before a job began in them, soon or before they had reported: look at the log of one, and at POD_STARTER_IDLE_TIME", t.soon, template)
		}
		if n == 0 {
			why += "; the next pod is tried at " + t.state.Until.UTC().Format(time.TimeOnly)
		}
		return max(n-t.open, 0), why
	case t.state.LastReport.IsZero() || now.Sub(t.state.LastReport) > backoff.Forget:
		return max(backoff.Trial-t.open, 0), fmt.Sprintf("until a job of this group has taken a pod of %s, at most %d are tried", template, backoff.Trial)
	}
	return -1, ""
}

// row is that of a template which counts pods for a group.
func (k *takers) row(p pair) *row {
	if demand.Flocked(p.group) {
		return k.guests[p.template]
	}
	return k.rows[p.template]
}

// template says how many pods of a template may be made for all groups, in the same
// way, where they are made for nobody in particular.
func (k *takers) template(name string, now time.Time) (most int, why string) {
	if r := k.rows[name]; r.users[""] {
		return r.most(now)
	}
	return -1, ""
}

// turns says how many pods of a template may be made for each of some groups, and why
// not more: those of other pools' schedds if all of these together have left the last
// ones, and those of users of this pool who have. As many groups as pods may be made
// have a turn, and others in each minute.
func (k *takers) turns(name string, groups []demand.Group, now time.Time) func(group string) (most int, why string) {
	of := map[string]string{} // why, by group
	whose := map[string]bool{}
	for _, r := range []*row{k.rows[name], k.guests[name]} {
		most, why := r.most(now)
		if most < 0 {
			continue
		}
		var all []string
		for _, g := range groups {
			if k.row(pair{g.ID, name}) == r && (demand.Flocked(g.ID) || r.leftBy(g)) {
				all = append(all, g.ID)
				of[g.ID] = why
			}
		}
		for i := range min(most, len(all)) {
			whose[all[(int(now.Unix()/60)%len(all)+i)%len(all)]] = true
		}
	}
	return func(group string) (int, string) {
		why, bounded := of[group]
		switch {
		case !bounded:
			return -1, ""
		case whose[group]:
			return 1, why
		}
		return 0, why
	}
}

// leftBy reports whether all users of a group have left pods.
func (r *row) leftBy(g demand.Group) bool {
	for _, p := range g.Parts {
		if !r.users[cmp.Or(p.Owner, p.User)] {
			return false
		}
	}
	return true
}

func (r *row) most(now time.Time) (most int, why string) {
	if r.state.Failures == 0 {
		return -1, ""
	}
	r.state = r.state.Settled(now)
	n, _ := r.state.Allowance(now)
	return max(n-r.open, 0), r.untaken().Words(now)
}

// Untaken is how many pods of a template no job has taken, one after another, and how
// long it waits because of that.
type Untaken struct {
	Left  int
	State backoff.State
	// Users is for how many users' jobs they were made; 0 if they were for nobody in
	// particular.
	Users int
}

func (r *row) untaken() Untaken {
	u := Untaken{Left: r.left, State: r.state, Users: len(r.users)}
	if r.users[""] {
		u.Users = 0
	}
	return u
}

// Words says why no further pod is made.
func (u Untaken) Words(now time.Time) string {
	made, next := "", "the next one"
	if u.Users > 0 {
		made, next = fmt.Sprintf(", made for jobs of %d users,", u.Users), "the next one for these"
	}
	text := fmt.Sprintf("the last %d pods%s came and no job took one", u.Left, made)
	if n, _ := u.State.Allowance(now); n == 0 {
		text += "; " + next + " is tried at " + u.State.Until.UTC().Format(time.TimeOnly)
	}
	return text
}

// untaken returns that of each template, in their order.
func (k *takers) untaken(templates []template.Template) []Untaken {
	all := make([]Untaken, len(templates))
	for i, t := range templates {
		r := k.rows[t.Name]
		all[i] = r.untaken()
	}
	return all
}
