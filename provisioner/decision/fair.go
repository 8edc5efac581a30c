package decision

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// claimant is a user with idle jobs.
type claimant struct {
	name     string
	priority float64
	usage    float64
	// parts are the user's idle jobs, by group.
	parts []part
}

// part is the idle jobs of one user in one group, submitted by one person.
type part struct {
	group, idle int
	owner       string
}

// order is a heap of the users. The one with the least usage for its priority is
// served first: that is the fair share of the negotiator
// (HTCondor src/condor_negotiator.V6/matchmaker.cpp:calculatePrioritySlice), which
// gives users parts of the pool in inverse proportion to their effective priority.
type order []*claimant

func (o order) Len() int { return len(o) }

func (o order) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(o[i].usage*o[i].priority, o[j].usage*o[j].priority), cmp.Compare(o[i].name, o[j].name)) < 0
}

func (o order) Swap(i, j int) { o[i], o[j] = o[j], o[i] }

// Push and Pop are of heap.Interface.
func (o *order) Push(x any) { *o = append(*o, x.(*claimant)) }

func (o *order) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}

// queue orders the users that have idle jobs.
func queue(in *Input) order {
	byName := map[string]*claimant{}
	for g, group := range in.Groups {
		for _, s := range group.Submitters {
			if s.Idle <= 0 {
				continue
			}
			c := byName[s.User]
			if c == nil {
				u := in.Users[s.User]
				if !(u.Priority > 0) || math.IsInf(u.Priority, 1) { // not a number, too
					u.Priority = DefaultPriority
				}
				if !(u.Usage >= 0) || math.IsInf(u.Usage, 1) {
					u.Usage = 0
				}
				c = &claimant{name: s.User, priority: u.Priority, usage: u.Usage}
				byName[s.User] = c
			}
			c.parts = append(c.parts, part{group: g, idle: s.Idle, owner: s.owner()})
		}
	}
	users := make(order, 0, len(byName))
	for _, c := range byName {
		users = append(users, c)
	}
	slices.SortFunc(users, func(a, b *claimant) int { return cmp.Compare(a.name, b.name) })
	heap.Init(&users)
	return users
}
