package simulation

import (
	"time"

	"podstarter/provisioner/resources"
)

// World is what jobs and pods meet.
type World struct {
	// Length is how long is measured. The run goes on afterwards until all jobs are
	// done that can be.
	Length    time.Duration
	Sites     []Site
	Templates []Template
	// Idle is after how long without a job a pod ends (STARTD_NOCLAIM_SHUTDOWN). The
	// rule sets it.
	Idle time.Duration
	// Lifetime is how long a pod takes jobs.
	Lifetime time.Duration
	Outages  []Outage
}

// Site is a cluster, or the part of it in which pods may run.
type Site struct {
	Name  string
	Nodes []resources.Amount
	// In Failing pods end soon after their start, in Silent they run and the
	// collector does not hear of them, in Full no node takes a pod.
	Failing, Silent, Full []Window
	// Preempted is after how long on average a pod is removed for another one; 0 is
	// never.
	Preempted time.Duration
}

// Template is a pod template of our rule. The other one makes pods of each size at
// each site that has a template.
type Template struct {
	Name   string
	Site   int // index in World.Sites
	Shapes []Shape
	// Rank is how much the site prefers the template.
	Rank float64
}

// Shape is a size of a template's pods.
type Shape struct {
	Name string
	Size resources.Amount
}

// Window is a part of the run.
type Window struct{ From, To time.Duration }

// Outage is when the access point of some users cannot be reached.
type Outage struct {
	Window
	Users []string
}

// in reports whether one of the windows has the time.
func in(windows []Window, now time.Duration) bool {
	for _, w := range windows {
		if now >= w.From && now < w.To {
			return true
		}
	}
	return false
}
