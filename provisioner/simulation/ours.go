package simulation

import (
	"slices"
	"strconv"
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/runtimes"
)

// Ours is the rule of package decision, with back-off and with run times learnt
// from jobs that have ended.
type Ours struct {
	Label  string
	Policy decision.Policy
	// Idle is STARTD_NOCLAIM_SHUTDOWN of the pods.
	Idle time.Duration
}

const (
	oursPeriod = 60 * time.Second
	// After so long without a node, or running without a report, a pod counts as one
	// that came to nothing.
	unschedulableAfter = 2 * time.Minute
	unreportedAfter    = 10 * time.Minute
	// The provisioner lists its pods once in a while, and watches them otherwise.
	relist = time.Hour
)

// limits are those of the simulated provisioner.
var limits = decision.Limits{Pods: 1000, PerRound: 100}

// Name returns the label.
func (o Ours) Name() string { return o.Label }

func (o Ours) idle() time.Duration { return o.Idle }

func (o Ours) begin(r *run) decider {
	d := &ours{
		run: r, policy: o.Policy, runtimes: make([]time.Duration, len(r.pool.queue.Classes)),
		states: make([]backoff.State, len(r.world.Templates)), noted: map[*pod]bool{}, shapes: map[int]time.Duration{}, taken: map[[2]int]time.Duration{},
	}
	for t, template := range r.world.Templates {
		takes := make([]bool, len(r.pool.queue.Classes))
		for c, class := range r.pool.queue.Classes {
			takes[c] = slices.Contains(class.Templates, template.Name)
		}
		for _, s := range template.Shapes {
			d.input.Shapes = append(d.input.Shapes, decision.Shape{Template: t, Name: s.Name, Size: s.Size, Lifetime: r.world.Lifetime})
			d.takes = append(d.takes, takes)
		}
	}
	for s := range d.input.Shapes {
		opens := slices.Clone(d.takes[s])
		for c, class := range r.pool.queue.Classes {
			opens[c] = opens[c] && d.opensPod(s, class.Request)
		}
		d.opens = append(d.opens, opens)
	}
	for c, class := range r.pool.queue.Classes {
		var fits []decision.Fit
		for s, shape := range d.input.Shapes {
			if d.opens[s][c] && shape.Size.Fits(class.Request) {
				fits = append(fits, decision.Fit{Shape: s, Request: class.Request, Rank: r.world.Templates[shape.Template].Rank})
			}
		}
		d.fits = append(d.fits, fits)
	}
	return d
}

// opensPod reports whether a job may be the first in a pod of a shape: that is for
// jobs which use more than half of it, or have no smaller shape in its template.
func (o *ours) opensPod(shape int, request resources.Amount) bool {
	s := o.input.Shapes[shape]
	if s.Size.Use(request) > 0.5 {
		return true
	}
	for _, other := range o.input.Shapes {
		if other.Template == s.Template && other.Size.CPUs < s.Size.CPUs && other.Size.Fits(request) {
			return false
		}
	}
	return true
}

type ours struct {
	*run
	policy decision.Policy
	input  decision.Input // its Shapes, and the Memory of the last decision
	fits   [][]decision.Fit
	takes  [][]bool // by shape and class: the job may run in such a pod
	opens  [][]bool // by shape and class: and be the first one in it
	states []backoff.State
	// runtimes are those learnt, by class.
	runtimes []time.Duration
	noted    map[*pod]bool         // pods whose failure is known to back-off
	shapes   map[int]time.Duration // when a pod of a shape was last withdrawn
	// taken is when a pod that was made for a class was last seen with a job, by class
	// and template.
	taken map[[2]int]time.Duration
}

func (o *ours) period() time.Duration { return oursPeriod }

// epoch is when the run begins; decisions know a calendar.
var epoch = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// round decides, and does what was decided.
func (o *ours) round() {
	if o.now%relist == 0 {
		o.m.count(o.now, &o.m.f.Lists, 1)
		o.m.count(o.now, &o.m.f.Objects, len(o.cluster.pods))
	}
	in := o.look()
	out := decision.Decide(in)
	o.input.Memory = out.Memory
	pods := slices.Clone(o.cluster.pods)
	for _, w := range out.Withdraw {
		o.withdraw(pods[w.Pod])
	}
	for _, c := range out.Create {
		o.create(c, in)
	}
	if n := len(o.cluster.pods); n > limits.Pods {
		o.flaw("there are %d pods, the limit is %d", n, limits.Pods)
	}
	for g, outcome := range out.Groups {
		sum := outcome.Free + outcome.Soon + outcome.Coming + outcome.New
		for _, w := range outcome.Waiting {
			sum += w.Jobs
		}
		if sum != outcome.Idle {
			o.flaw("group %d has %d jobs, and the decision speaks of %d", g, outcome.Idle, sum)
		}
	}
}

// withdraw removes a pod before it runs.
func (o *ours) withdraw(p *pod) {
	if p.phase != decision.Pending {
		o.flaw("a pod in phase %d is withdrawn", p.phase)
	}
	if age := o.now - p.created; age < o.policy.Settle {
		o.flaw("a pod is withdrawn %s after it was made", age)
	}
	o.shapes[p.shape] = o.now
	o.m.count(o.now, &o.m.f.Withdrawn, 1)
	o.m.count(o.now, &o.m.f.Deletes, 1)
	o.cluster.remove(p)
}

// create makes pods.
func (o *ours) create(c decision.Creation, in decision.Input) {
	if at, ok := o.shapes[c.Shape]; ok && o.now-at < o.policy.Settle {
		o.flaw("a pod is made %s after one of the same shape was withdrawn", o.now-at)
	}
	class, err := strconv.Atoi(in.Groups[c.Group].ID)
	if err != nil || !o.pool.matches[class] {
		o.flaw("%d pods are made for jobs that match nothing", c.Count)
		o.m.count(o.now, &o.m.f.ForNothing, c.Count)
	}
	o.m.count(o.now, &o.m.f.Creates, c.Count)
	o.m.count(o.now, &o.m.f.Made, c.Count)
	shape := o.input.Shapes[c.Shape]
	for range c.Count {
		o.cluster.create(&pod{
			site: o.world.Templates[shape.Template].Site, shape: c.Shape, user: c.User, class: class, takes: o.takes[c.Shape], opens: o.opens[c.Shape], size: shape.Size,
		})
	}
}

// look makes the input of a decision of what a provisioner can know.
func (o *ours) look() decision.Input {
	in := o.input
	in.Now, in.Limits, in.Policy = epoch.Add(o.now), limits, o.policy
	in.Users = map[string]decision.User{}
	open := map[[2]int]int{} // pods that no job has taken
	for _, p := range o.cluster.pods {
		pair := [2]int{p.class, o.input.Shapes[p.shape].Template}
		switch {
		case len(p.claims) > 0:
			o.taken[pair] = o.now
		case !p.ran:
			open[pair]++
		}
	}
	for class := range o.pool.queue.Classes {
		g := decision.Group{ID: strconv.Itoa(class), Runtime: o.runtimes[class]}
		for _, b := range o.pool.users {
			if n := len(b.byClass[class]); n > 0 && o.pool.reachable(b.user) {
				g.Submitters = append(g.Submitters, decision.Submitter{User: b.user, Idle: n})
			}
		}
		if len(g.Submitters) > 0 {
			in.Groups = append(in.Groups, g)
			in.Fits = append(in.Fits, o.tried(class, open))
		}
	}
	owned := map[string]int{}
	for _, p := range o.cluster.pods {
		in.Pods = append(in.Pods, o.see(p))
		owned[p.user]++
	}
	for _, b := range o.pool.users {
		in.Users[b.user] = decision.User{Usage: b.running, Pods: owned[b.user]}
		in.Partial = in.Partial || !o.pool.reachable(b.user)
	}
	for t, template := range o.world.Templates {
		o.states[t] = o.states[t].Settled(in.Now)
		allowance, why := o.states[t].Allowance(in.Now)
		in.Templates = append(in.Templates, decision.Template{Name: template.Name, Allowance: allowance, AllowanceWhy: why})
	}
	return in
}

// tried returns the fits of a class, of which only a few pods are made until a job
// has taken one.
func (o *ours) tried(class int, open map[[2]int]int) []decision.Fit {
	fits := slices.Clone(o.fits[class])
	for i := range fits {
		pair := [2]int{class, o.input.Shapes[fits[i].Shape].Template}
		if at, ok := o.taken[pair]; !ok || o.now-at > backoff.Forget {
			fits[i].Bounded, fits[i].Most, fits[i].Why = true, max(backoff.Trial-open[pair], 0), "no job has taken a pod yet"
		}
	}
	return fits
}

// see is what is known of a pod.
func (o *ours) see(p *pod) decision.Pod {
	phase := p.phase
	stuck := phase == decision.Pending && p.node < 0 && o.now-p.created >= unschedulableAfter
	switch {
	case stuck:
		o.note(p, backoff.Unschedulable)
	case phase == decision.Starting && o.now-p.started >= unreportedAfter:
		o.note(p, backoff.Unreported)
		phase = decision.Ending // no job can be expected to run there
	}
	seen := decision.Pod{ID: strconv.Itoa(p.id), Shape: p.shape, Phase: phase, Stuck: stuck, Created: epoch.Add(p.created), Free: p.free}
	if p.until > 0 {
		seen.Until = epoch.Add(p.until)
	}
	for _, c := range p.claims {
		part := decision.Claim{Amount: c.amount}
		if known := o.runtimes[c.class]; known > 0 {
			part.Until = epoch.Add(c.began + known)
		}
		seen.Claims = append(seen.Claims, part)
	}
	return seen
}

// note tells back-off of a pod that came to nothing, once.
func (o *ours) note(p *pod, why backoff.Reason) {
	if o.noted[p] {
		return
	}
	o.noted[p] = true
	t := o.input.Shapes[p.shape].Template
	o.states[t] = o.states[t].Failed(why, epoch.Add(o.now))
}

func (o *ours) reported(p *pod) {
	t := o.input.Shapes[p.shape].Template
	o.states[t] = o.states[t].Reported(epoch.Add(o.now))
}

func (o *ours) failed(p *pod, why backoff.Reason) { o.note(p, why) }

func (o *ours) finished(class int, ran time.Duration) {
	o.runtimes[class] = runtimes.Mean(o.runtimes[class], ran, 1)
}

// changed counts what a watch sends, and the removal of a pod that has ended.
func (o *ours) changed(p *pod) {
	o.m.count(o.now, &o.m.f.Objects, 1)
	if p.over {
		delete(o.noted, p)
		if p.phase != decision.Pending {
			o.m.count(o.now, &o.m.f.Deletes, 1)
		}
	}
}
