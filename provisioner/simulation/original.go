package simulation

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/resources"
)

// Original is the rule of sfiligoi/prp-htcondor-portal
// (provisioner/python/prp_provisioner: event_loop.py, provisioner_clustering.py,
// provisioner_k8s.py). One instance runs at each site, and each looks at all idle
// jobs.
type Original struct {
	// Label is how tables call it.
	Label string
	// MaxPods is max_pods_per_cluster, 20 by default: how many pods may wait for jobs
	// with one request.
	MaxPods int
	// Idle is STARTD_NOCLAIM_SHUTDOWN of its pods, 20 minutes by default.
	Idle time.Duration
}

// The other settings have the program's defaults.
const (
	originalPeriod    = 120 * time.Second // sleep_time
	originalMaxSubmit = 1000              // max_submit_pods_per_cluster
	originalMemory    = 4096              // MiB: smaller requests count as this
	originalDisk      = 8000000           // KiB
	originalOverhead  = 1000              // MiB that a pod has beside its slot
	originalKept      = 24 * time.Hour    // k8s_job_ttl: lists have ended pods for so long
)

// Name returns the label.
func (o Original) Name() string { return o.Label }

func (o Original) idle() time.Duration { return o.Idle }

func (o Original) begin(r *run) decider {
	d := &original{run: r, maxPods: o.MaxPods}
	for _, class := range r.pool.queue.Classes {
		key := class.Request
		key.CPUs = max(key.CPUs, 1)
		key.Memory, key.Disk = max(key.Memory, originalMemory), max(key.Disk, originalDisk)
		d.keys = append(d.keys, key)
	}
	return d
}

type original struct {
	*run
	maxPods int
	keys    []resources.Amount // by class, what the pods for it have
	ended   []time.Duration    // when pods ended that lists still have
}

func (o *original) period() time.Duration { return originalPeriod }

// round makes pods for each request that idle jobs have, at each site.
func (o *original) round() {
	jobs, servable := map[resources.Amount]int{}, map[resources.Amount]int{}
	for _, b := range o.pool.users {
		if !o.pool.reachable(b.user) {
			continue
		}
		for class, idle := range b.byClass {
			if len(idle) > 0 {
				jobs[o.keys[class]] += len(idle)
				if o.pool.matches[class] {
					servable[o.keys[class]] += len(idle)
				}
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(jobs), compareAmounts)
	for len(o.ended) > 0 && o.ended[0] < o.now-originalKept {
		o.ended = o.ended[1:]
	}
	for site := range o.world.Sites {
		o.m.count(o.now, &o.m.f.Lists, 1)
		for _, key := range keys {
			unclaimed, total := 0, 0
			for _, p := range o.cluster.pods {
				if p.site != site || p.key != key {
					continue
				}
				total++
				if len(p.claims) == 0 {
					unclaimed++
				}
			}
			want := o.want(jobs[key], total) - unclaimed
			if want <= 0 {
				continue
			}
			// Those that would not be made if no job without a match were there.
			needed := max(o.want(servable[key], total)-unclaimed, 0)
			o.m.count(o.now, &o.m.f.ForNothing, want-needed)
			o.submit(site, key, want)
		}
	}
	o.m.count(o.now, &o.m.f.Objects, len(o.cluster.pods)+len(o.ended))
}

// want is how many pods without a job there should be.
func (o *original) want(idle, total int) int {
	if idle == 0 || total >= originalMaxSubmit {
		return 0
	}
	n := 1 + idle/4
	if n > 20 {
		n = 20 + (n-20)/4
	}
	return min(n, o.maxPods)
}

// submit makes a Kubernetes Job with so many pods.
func (o *original) submit(site int, key resources.Amount, pods int) {
	o.m.count(o.now, &o.m.f.Creates, 1)
	o.m.count(o.now, &o.m.f.Made, pods)
	takes := make([]bool, len(o.keys))
	for class, k := range o.keys {
		takes[class] = k == key && o.hasTemplate(site, class)
	}
	for range pods {
		o.cluster.create(&pod{site: site, shape: -1, key: key, takes: takes, size: key, overhead: originalOverhead})
	}
}

// hasTemplate reports whether jobs of a class match what a site has.
func (o *original) hasTemplate(site, class int) bool {
	for _, t := range o.world.Templates {
		if t.Site == site && slices.Contains(o.pool.queue.Classes[class].Templates, t.Name) {
			return true
		}
	}
	return false
}

func (o *original) reported(*pod)                   {}
func (o *original) failed(*pod, backoff.Reason)     {}
func (o *original) finished(_ int, _ time.Duration) {}

func (o *original) changed(p *pod) {
	if p.over {
		o.ended = append(o.ended, o.now)
	}
}

func compareAmounts(a, b resources.Amount) int {
	return cmp.Or(cmp.Compare(a.CPUs, b.CPUs), cmp.Compare(a.Memory, b.Memory), cmp.Compare(a.Disk, b.Disk), cmp.Compare(a.GPUs, b.GPUs))
}

// The program with its defaults, and with a limit that does not bind.
var (
	OriginalDefault = Original{Label: "original", MaxPods: 20, Idle: 20 * time.Minute}
	OriginalWide    = Original{Label: "original, 1000 pods", MaxPods: 1000, Idle: 20 * time.Minute}
)
