package simulation

import (
	"slices"
	"time"

	"podstarter/provisioner/resources"
)

// Scenario is a queue and what it meets.
type Scenario struct {
	Name string
	// What says for readers what is in it.
	What  string
	Queue Queue
	World World
	Seed  uint64
}

// Week is the length of the published scenarios.
const Week = 7 * 24 * time.Hour

const day = 24 * time.Hour

// kind is a mixture of jobs and what happens to the sites.
type kind struct {
	name, what string
	fill       func(g *generator)
}

var kinds = []kind{
	{"day and night", "four users submit small and middle jobs of about 40 minutes, most of them by day on weekdays", (*generator).diurnal},
	{"bursts", "every few hours, a user submits 100 to 600 jobs of 15 to 60 minutes", (*generator).bursts},
	{"short jobs", "every hour or so, a user submits 200 to 1000 jobs of 1 to 5 minutes", (*generator).short},
	{"three shapes", "jobs with 1, 4 and 8 CPUs, for which users ask for memory in a dozen sizes, and some with a GPU", (*generator).shapes},
	{"unmatchable", "200 to 400 jobs wait for slots that no pod has, beside a few that can run", (*generator).unmatchable},
	{"broken site", "day and night; the pods of a second, preferred site fail for two days, and for two days they do not report", (*generator).broken},
	{"full site", "day and night; a second, preferred site has no room for half of each day", (*generator).full},
	{"preemption", "day and night; after 6 hours on average a pod is removed for another one", (*generator).preempted},
	{"unreachable", "day and night; an access point does not answer for three hours a day", (*generator).unreachable},
	{"all of it", "all of these kinds of jobs and faults, at two sites", (*generator).all},
}

// Scenarios makes all scenarios.
func Scenarios(seed uint64, length time.Duration) []Scenario {
	var all []Scenario
	for i, k := range kinds {
		g := newGenerator(seed+uint64(i), length)
		k.fill(g)
		g.q.sort()
		all = append(all, Scenario{Name: k.name, What: k.what, Queue: g.q, World: g.w, Seed: seed + uint64(i)})
	}
	return all
}

// Named returns the scenario with a name.
func Named(all []Scenario, name string) (Scenario, bool) {
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return Scenario{}, false
	}
	return all[i], true
}

func amount(cpus, memoryGB, gpus int64) resources.Amount {
	return resources.Amount{CPUs: cpus, Memory: memoryGB << 10, Disk: cpus * 8000000, GPUs: gpus}
}

// DefaultWorld is one site with plain nodes and some with GPUs.
func DefaultWorld(length time.Duration) World {
	w := World{Length: length, Lifetime: day}
	w.addSite("main", 24, 2)
	return w
}

// addSite adds a site with two templates: "plain" and "gpu", or with the site's
// name in front.
func (w *World) addSite(name string, nodes, gpuNodes int) {
	site := Site{Name: name}
	for range nodes {
		site.Nodes = append(site.Nodes, resources.Amount{CPUs: 32, Memory: 160 << 10})
	}
	for range gpuNodes {
		site.Nodes = append(site.Nodes, resources.Amount{CPUs: 32, Memory: 160 << 10, GPUs: 4})
	}
	at, prefix := len(w.Sites), ""
	if at > 0 {
		prefix = name + "-"
	}
	w.Sites = append(w.Sites, site)
	w.Templates = append(w.Templates, Template{Name: prefix + "plain", Site: at, Shapes: []Shape{
		{"c1", amount(1, 4, 0)}, {"m1", amount(1, 12, 0)}, {"c2", amount(2, 8, 0)}, {"c4", amount(4, 16, 0)}, {"c8", amount(8, 32, 0)},
	}})
	if gpuNodes > 0 {
		w.Templates = append(w.Templates, Template{Name: prefix + "gpu", Site: at, Shapes: []Shape{{"g1", amount(4, 16, 1)}}})
	}
}
