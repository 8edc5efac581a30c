package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/resources"
)

// pod is a pod of the model.
type pod struct {
	id    int
	site  int
	shape int // index in the decision's shapes; of our rule
	user  string
	class int              // of the job for which it was made; of our rule
	key   resources.Amount // what exactly its jobs request; of the other rule
	// takes has, for each class, whether its jobs match the pod's slots.
	takes []bool
	// opens has it for a pod in which no job runs yet; nil is the same.
	opens []bool
	size  resources.Amount
	free  resources.Amount
	// overhead is memory that the pod has beside its slots.
	overhead int64

	phase     decision.Phase
	over      bool
	node      int // index in Site.Nodes, -1 before it has one
	created   time.Duration
	bound     time.Duration // when it got its node
	started   time.Duration
	until     time.Duration // when it takes no more jobs
	idleSince time.Duration
	claims    []*claim
	ran       bool // a job ran in it
}

// cluster is the nodes of all sites, and the pods on them.
type cluster struct {
	*clock
	world   *World
	random  *rand.Rand
	free    [][]resources.Amount // by site and node
	pods    []*pod               // that are there, in the order in which they were made
	made    int
	retries []bool // by site: the scheduler looks again soon
	// reported, failed and ended are told of pods.
	reported func(*pod)
	failed   func(*pod, backoff.Reason)
	ended    func(*pod)
	changed  func(*pod) // each change that a watch of pods would see
}

func newCluster(c *clock, w *World, random *rand.Rand) *cluster {
	k := &cluster{clock: c, world: w, random: random, retries: make([]bool, len(w.Sites))}
	for _, s := range w.Sites {
		k.free = append(k.free, slices.Clone(s.Nodes))
	}
	return k
}

// create makes a pod.
func (k *cluster) create(p *pod) {
	p.id, p.created, p.node, p.free = k.made, k.now, -1, p.size
	p.phase = decision.Pending
	k.made++
	k.pods = append(k.pods, p)
	k.changed(p)
	k.schedule(p.site)
}

// demand is what a pod takes of its node.
func (p *pod) demand() resources.Amount {
	d := p.size
	d.Memory += p.overhead
	d.Disk = 0 // nodes have enough
	return d
}

// schedule has the scheduler look at the pods of a site that have no node.
func (k *cluster) schedule(site int) {
	if k.retries[site] {
		return
	}
	k.retries[site] = true
	k.after(time.Second, func() {
		k.retries[site] = false
		if in(k.world.Sites[site].Full, k.now) {
			k.after(time.Minute, func() { k.schedule(site) })
			return
		}
		for _, p := range slices.Clone(k.pods) {
			if p.site == site && p.node < 0 {
				k.bind(p)
			}
		}
	})
}

// bind gives a pod the node with the most free CPUs, as the scheduler does unless
// it is told otherwise.
func (k *cluster) bind(p *pod) {
	best, want := -1, p.demand()
	for n, free := range k.free[p.site] {
		// A node with GPUs is for those who need them.
		if !free.Fits(want) || (k.world.Sites[p.site].Nodes[n].GPUs > 0) != (want.GPUs > 0) {
			continue
		}
		if best < 0 || free.CPUs > k.free[p.site][best].CPUs {
			best = n
		}
	}
	if best < 0 {
		return
	}
	k.free[p.site][best] = k.free[p.site][best].Minus(want)
	p.node, p.bound = best, k.now
	k.changed(p)
	k.after(k.pull(), func() { k.start(p) })
	if mean := k.world.Sites[p.site].Preempted; mean > 0 {
		k.after(time.Duration(k.random.ExpFloat64()*float64(mean)), func() { k.remove(p) })
	}
}

// pull is how long a pod's images take: mostly 40 to 120 seconds, now and then
// much longer.
func (k *cluster) pull() time.Duration {
	if k.random.IntN(20) == 0 {
		return time.Duration(300+k.random.IntN(600)) * time.Second
	}
	return time.Duration(40+k.random.IntN(80)) * time.Second
}

// start runs a pod's containers.
func (k *cluster) start(p *pod) {
	if p.over {
		return
	}
	site := k.world.Sites[p.site]
	p.phase, p.started = decision.Starting, k.now
	k.changed(p)
	switch {
	case in(site.Failing, k.now):
		k.after(time.Duration(10+k.random.IntN(30))*time.Second, func() {
			if !p.over {
				k.remove(p)
			}
		})
	case in(site.Silent, k.now):
		// The startd ends for want of a claim, whether the collector knows it or not.
		k.after(k.world.Idle, func() { k.remove(p) })
	default:
		k.after(time.Duration(20+k.random.IntN(40))*time.Second, func() { k.report(p) })
	}
}

// report makes a pod's slots known to the collector.
func (k *cluster) report(p *pod) {
	if p.over {
		return
	}
	p.phase, p.until = decision.Reported, p.created+k.world.Lifetime
	k.reported(p)
	k.after(p.until-k.now, func() {
		if p.over {
			return
		}
		p.phase = decision.Ending
		if len(p.claims) == 0 {
			k.remove(p)
		}
	})
	k.idle(p)
}

// idle notes that no job runs in a pod.
func (k *cluster) idle(p *pod) {
	if p.phase == decision.Ending {
		k.remove(p)
		return
	}
	since := k.now
	p.idleSince = since
	k.after(k.world.Idle, func() {
		if !p.over && len(p.claims) == 0 && p.idleSince == since {
			k.remove(p)
		}
	})
}

// remove ends a pod, whatever it does.
func (k *cluster) remove(p *pod) {
	if p.over {
		return
	}
	p.over = true
	if p.node >= 0 {
		d := p.demand()
		k.free[p.site][p.node] = k.free[p.site][p.node].Plus(d)
		k.schedule(p.site)
	}
	k.pods = slices.DeleteFunc(k.pods, func(o *pod) bool { return o == p })
	if p.phase == decision.Starting {
		k.failed(p, backoff.Failed)
	}
	k.changed(p)
	k.ended(p)
}
