package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/decision"
)

// Rule decides about pods.
type Rule interface {
	// Name is how tables call it.
	Name() string
	// idle is after how long without a job its pods end.
	idle() time.Duration
	// begin makes what decides in one run.
	begin(r *run) decider
}

// decider is a rule in one run.
type decider interface {
	period() time.Duration
	round()
	reported(*pod)
	failed(*pod, backoff.Reason)
	finished(class int, ran time.Duration)
	changed(*pod)
}

// Result is what became of a scenario under a rule.
type Result struct {
	Scenario, Rule string
	Figures        Figures
	Samples        []Sample
	// Violations are broken promises, at most ten.
	Violations []string
}

// run is one scenario under one rule.
type run struct {
	*clock
	world   *World
	pool    *pool
	cluster *cluster
	m       *measure
	result  Result
	flaws   int
}

// sampled is the time between samples.
const sampled = 10 * time.Minute

// patience is how long after the measured time all jobs must be done.
const patience = 72 * time.Hour

// Run runs a scenario under a rule.
func Run(s Scenario, rule Rule) Result {
	c := &clock{}
	world := s.World
	world.Idle = rule.idle()
	r := &run{clock: c, world: &world, m: newMeasure(world.Length), result: Result{Scenario: s.Name, Rule: rule.Name()}}
	r.cluster = newCluster(c, &world, rand.New(rand.NewPCG(s.Seed, 2)))
	r.pool = newPool(c, &world, &s.Queue, r.m)
	r.pool.cluster = r.cluster
	d := rule.begin(r)
	r.pool.finished = d.finished
	r.cluster.reported = d.reported
	r.cluster.changed = d.changed
	r.cluster.failed = func(p *pod, why backoff.Reason) {
		r.m.count(r.now, &r.m.f.Failed, 1)
		d.failed(p, why)
	}
	r.cluster.ended = func(p *pod) {
		r.pool.interrupt(p)
		r.settle(p)
	}
	c.every(negotiatorInterval, r.pool.negotiate)
	c.every(d.period(), d.round)
	c.every(sampled, r.sample)
	c.after(30*time.Second, func() { c.every(time.Minute, r.split) })
	for c.now < world.Length || r.pool.left > 0 && c.now < world.Length+patience {
		c.step()
	}
	if r.pool.left > 0 {
		r.flaw("%d jobs that match something were not served within %s", r.pool.left, patience)
	}
	for _, p := range r.cluster.pods {
		for _, claim := range p.claims {
			r.m.used(claim.amount.CPUs, claim.began, c.now)
		}
		r.settle(p)
	}
	r.result.Figures = r.m.figures()
	return r.result
}

// settle counts a pod's time on its node.
func (r *run) settle(p *pod) {
	if p.node >= 0 {
		r.m.pod(p.size.CPUs, p.bound, r.now)
	}
}

// flaw notes a broken promise.
func (r *run) flaw(format string, args ...any) {
	if r.flaws++; r.flaws <= 10 {
		r.result.Violations = append(r.result.Violations, fmt.Sprintf("at %s: ", r.now)+fmt.Sprintf(format, args...))
	}
}

// sample notes what there is, and whether it adds up.
func (r *run) sample() {
	s := Sample{Pods: len(r.cluster.pods)}
	for _, b := range r.pool.users {
		for class, jobs := range b.byClass {
			if r.pool.matches[class] {
				s.Idle += len(jobs)
			}
		}
	}
	for _, p := range r.cluster.pods {
		sum := p.free
		for _, c := range p.claims {
			sum = sum.Plus(c.amount)
			s.BusyCPUs += int(c.amount.CPUs)
			if !p.takes[c.class] {
				r.flaw("a job runs in pod %d, whose slots it does not match", p.id)
			}
		}
		if sum != p.size {
			r.flaw("pod %d has %v free and claimed, its size is %v", p.id, sum, p.size)
		}
		if p.node >= 0 {
			s.PodCPUs += int(p.size.CPUs)
		}
	}
	if r.now < r.world.Length {
		r.result.Samples = append(r.result.Samples, s)
	}
}

// split notes which pods waste CPUs at the moment.
func (r *run) split() {
	if r.now >= r.world.Length {
		return
	}
	for _, p := range r.cluster.pods {
		hours := float64(p.free.CPUs) / 60
		switch {
		case p.node < 0:
		case p.phase < decision.Reported:
			r.m.f.Starting += hours
		case len(p.claims) == 0:
			r.m.f.Empty += hours
		default:
			r.m.f.Beside += hours
		}
	}
}
