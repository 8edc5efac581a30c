package simulation

import (
	"cmp"
	"slices"
	"time"

	"podstarter/provisioner/decision"
	"podstarter/provisioner/resources"
)

// HTCondor's defaults (NEGOTIATOR_INTERVAL, CLAIM_WORKLIFE).
const (
	negotiatorInterval = 60 * time.Second
	claimWorklife      = 20 * time.Minute
)

// claim is a part of a pod that runs jobs of one user and class.
type claim struct {
	pod     *pod
	job     int
	user    int
	class   int
	amount  resources.Amount
	claimed time.Duration // when the user got it
	began   time.Duration // when its job began
	lost    bool
}

// pool is the jobs and where they run.
type pool struct {
	*clock
	world *World
	queue *Queue
	users []*backlog
	// waiting has since when each job waits, and running what it runs in.
	waiting []time.Duration
	cluster *cluster
	m       *measure
	// finished is told of each job that has ended.
	finished func(class int, ran time.Duration)
	byName   map[string]int
	matches  []bool // by class: a template has slots that match
	left     int    // jobs that can run and have not ended, those that are still to come included
}

func newPool(c *clock, w *World, q *Queue, m *measure) *pool {
	p := &pool{clock: c, world: w, queue: q, m: m, waiting: make([]time.Duration, len(q.Jobs)), byName: map[string]int{}}
	for i, name := range q.users() {
		p.users = append(p.users, &backlog{user: name, byClass: make([][]int, len(q.Classes))})
		p.byName[name] = i
	}
	for _, class := range q.Classes {
		p.matches = append(p.matches, servable(w, class))
	}
	for i := range q.Jobs {
		if p.matches[q.Jobs[i].Class] {
			p.left++
		}
	}
	p.submitFrom(0)
	return p
}

// servable reports whether one of a class's templates has a shape that is large
// enough.
func servable(w *World, class Class) bool {
	for _, t := range w.Templates {
		if !slices.Contains(class.Templates, t.Name) {
			continue
		}
		for _, s := range t.Shapes {
			if s.Size.Fits(class.Request) {
				return true
			}
		}
	}
	return false
}

// submitFrom submits a job when its time has come, and then the next ones.
func (p *pool) submitFrom(job int) {
	if job >= len(p.queue.Jobs) {
		return
	}
	p.after(p.queue.Jobs[job].Submit-p.now, func() {
		for ; job < len(p.queue.Jobs) && p.queue.Jobs[job].Submit <= p.now; job++ {
			j := p.queue.Jobs[job]
			p.waiting[job] = p.now
			p.users[p.byName[j.User]].push(j.Class, job)
			p.m.submitted(job, p.matches[j.Class], p.now)
		}
		p.submitFrom(job)
	})
}

// reachable reports whether a user's access point answers.
func (p *pool) reachable(user string) bool {
	for _, o := range p.world.Outages {
		if p.now >= o.From && p.now < o.To && slices.Contains(o.Users, user) {
			return false
		}
	}
	return true
}

// negotiate gives free room to idle jobs, one after another: always to the user
// who has least.
func (p *pool) negotiate() {
	var rooms []*pod
	for _, pod := range p.cluster.pods {
		if pod.phase == decision.Reported && pod.free.CPUs > 0 {
			rooms = append(rooms, pod)
		}
	}
	// Jobs prefer the pod with the fewest CPUs left, and then with the least memory
	// (NEGOTIATOR_PRE_JOB_RANK). Among equals the order is arbitrary but lasts.
	slices.SortFunc(rooms, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(a.free.CPUs, b.free.CPUs), cmp.Compare(a.free.Memory, b.free.Memory), cmp.Compare(mix(a.id), mix(b.id)))
	})
	// What is left of a slot goes to the same user until the next cycle
	// (CLAIM_PARTITIONABLE_LEFTOVERS).
	owner := map[*pod]int{}
	skip := make([][]bool, len(p.users))
	var active []int
	for u, b := range p.users {
		if p.reachable(b.user) {
			skip[u] = make([]bool, len(p.queue.Classes))
			active = append(active, u)
		}
	}
	for len(active) > 0 && len(rooms) > 0 {
		u := slices.MinFunc(active, func(a, b int) int { return cmp.Compare(p.users[a].running, p.users[b].running) })
		class := p.users[u].oldest(skip[u])
		if class < 0 {
			active = slices.DeleteFunc(active, func(o int) bool { return o == u })
			continue
		}
		room := p.match(rooms, owner, u, class)
		if room == nil {
			skip[u][class] = true
			continue
		}
		owner[room] = u
		p.run(&claim{pod: room, user: u, class: class, amount: p.queue.Classes[class].Request, claimed: p.now})
		if room.free.CPUs == 0 {
			rooms = slices.DeleteFunc(rooms, func(o *pod) bool { return o == room })
		}
	}
}

// match returns the pod that a user's job prefers, or nil.
func (p *pool) match(rooms []*pod, owner map[*pod]int, user, class int) *pod {
	var best *pod
	request := p.queue.Classes[class].Request
	for _, pod := range rooms {
		if !pod.takes[class] || !pod.free.Fits(request) {
			continue
		}
		if len(pod.claims) == 0 && pod.opens != nil && !pod.opens[class] {
			continue
		}
		if o, taken := owner[pod]; taken && o != user {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(pod.free.CPUs, best.free.CPUs), cmp.Compare(pod.free.Memory, best.free.Memory)) < 0 {
			best = pod
		}
	}
	return best
}

// mix makes an arbitrary order of numbers.
func mix(n int) uint64 {
	x := uint64(n+1) * 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// run begins the user's next job of the class in a claim.
func (p *pool) run(c *claim) {
	c.job, c.began = p.users[c.user].pop(c.class), p.now
	c.pod.free = c.pod.free.Minus(c.amount)
	c.pod.claims = append(c.pod.claims, c)
	c.pod.ran = true
	p.users[c.user].running += float64(c.amount.CPUs)
	p.m.began(c.job, p.waiting[c.job], p.now, p.matches[c.class])
	p.after(p.queue.Jobs[c.job].Run, func() { p.end(c) })
}

// release gives back what a claim had.
func (p *pool) release(c *claim) {
	p.m.used(c.amount.CPUs, c.began, p.now)
	p.users[c.user].running -= float64(c.amount.CPUs)
	c.pod.free = c.pod.free.Plus(c.amount)
	c.pod.claims = slices.DeleteFunc(c.pod.claims, func(o *claim) bool { return o == c })
}

// end ends a claim's job, and begins the next one in it if the access point has
// one and may reuse the claim.
func (p *pool) end(c *claim) {
	if c.lost {
		return
	}
	p.release(c)
	p.m.finished(p.now)
	p.left--
	p.finished(c.class, p.now-c.began)
	b := p.users[c.user]
	if len(b.byClass[c.class]) > 0 && p.now-c.claimed < claimWorklife && c.pod.phase == decision.Reported && p.reachable(b.user) {
		p.run(&claim{pod: c.pod, user: c.user, class: c.class, amount: c.amount, claimed: c.claimed})
		return
	}
	if len(c.pod.claims) == 0 {
		p.cluster.idle(c.pod)
	}
}

// interrupt puts the jobs of a pod that is gone back into the queue.
func (p *pool) interrupt(pod *pod) {
	for _, c := range slices.Clone(pod.claims) {
		p.release(c)
		c.lost = true
		p.waiting[c.job] = p.now
		p.users[c.user].back(c.class, c.job)
		p.m.interrupted(c.job, p.matches[c.class], p.now)
	}
}
