package round

import (
	"math"
	"time"

	"podstarter/classads"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/runtimes"
)

// learn notes how long jobs run.
func (r *Round) learn(s sight, now time.Time) {
	groups := make([]runtimes.Group, len(s.groups))
	for i, g := range s.groups {
		groups[i] = runtimes.Group{ID: g.ID, Guest: demand.Flocked(g.ID), Stated: r.stated(g, now)}
		if len(g.Schedds) > 0 {
			groups[i].Source = g.Schedds[0].Schedd.String()
		}
		for _, c := range g.Clusters {
			groups[i].Clusters = append(groups[i].Clusters, runtimes.Cluster(c))
		}
	}
	pods := map[string]runtimes.Pod{}
	for _, u := range s.units {
		for _, host := range u.Hosts {
			slots := s.slots[host]
			if slots == nil {
				continue
			}
			p := runtimes.Pod{Ended: slots.Ended, Busy: slots.Busy}
			for _, c := range slots.Claims {
				if c.Job != "" {
					p.Jobs = append(p.Jobs, runtimes.Job{ID: c.Job, Began: c.Began})
				}
			}
			pods[host] = p
		}
	}
	r.runtimes.Look(now, groups, pods)
}

// longestStated bounds what jobs say of their time.
const longestStated = 365 * 24 * time.Hour

// bounds are those of the site's expression for one group. There may be tens of
// thousands of groups in a round.
var bounds = classads.Limits{Steps: 1000, Bytes: 64 << 10}

// stated returns how long the jobs of a group run at most, by the site's expression.
func (r *Round) stated(g demand.Group, now time.Time) time.Duration {
	if r.config.Runtime == nil {
		return 0
	}
	seconds, ok := r.config.Runtime.Eval(classads.Env{My: g.Ad, Now: func() time.Time { return now }, Limits: bounds}).Number()
	if !ok || math.IsNaN(seconds) || seconds <= 0 {
		return 0
	}
	return time.Duration(min(seconds, longestStated.Seconds()) * float64(time.Second))
}
