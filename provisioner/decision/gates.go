package decision

import (
	"cmp"

	"podstarter/provisioner/resources"
)

// gates counts pods against what limits them.
type gates struct {
	in       *Input
	round    int            // made by this decision
	pods     int            // all that are there, with those made now
	unready  int            // of those, not yet reported
	shapes   []int          // pods by shape
	template []int          // pods by template
	arriving []int          // of those, not yet reported
	trying   []int          // of those, not stuck
	stuck    []int          // pods by shape for which no node has room
	users    map[string]int // made by this decision, by whose jobs need them
	coming   []int          // pods on their way of which a group's job took the first part
	// made counts pods that this decision makes, by group and template.
	made map[[2]int]int
}

func newGates(in *Input) gates {
	g := gates{
		in: in, shapes: make([]int, len(in.Shapes)),
		template: make([]int, len(in.Templates)), arriving: make([]int, len(in.Templates)),
		trying: make([]int, len(in.Templates)), stuck: make([]int, len(in.Shapes)),
		users: map[string]int{}, coming: make([]int, len(in.Groups)), made: map[[2]int]int{},
	}
	for _, p := range in.Pods {
		g.count(p)
	}
	return g
}

func (g *gates) count(p Pod) {
	g.pods++
	unready := p.Phase < Reported
	if unready {
		g.unready++
	}
	if p.Shape < 0 {
		return
	}
	g.shapes[p.Shape]++
	t := g.in.Shapes[p.Shape].Template
	g.template[t]++
	if !unready {
		return
	}
	g.arriving[t]++
	switch {
	case !p.Stuck:
		g.trying[t]++
	case !p.Placed:
		g.stuck[p.Shape]++
	}
}

// opened counts a pod that is made now.
func (g *gates) opened(group, shape int) {
	g.round++
	g.coming[group]++
	g.made[[2]int{group, g.in.Shapes[shape].Template}]++
	g.count(Pod{Shape: shape})
}

// user says why no pod is made for a user, or for nobody in particular, or nothing if
// one may.
func (g *gates) user(owner string) refusal {
	l := g.in.Limits
	switch {
	case reached(g.pods, l.Pods):
		return refuse(PodLimit, "the limit of %d pods is reached", l.Pods)
	case reached(g.unready, l.Coming):
		return refuse(ComingLimit, "%d pods have not reported yet, which is the limit", l.Coming)
	case reached(g.round, l.PerRound):
		return refuse(RoundLimit, "%d pods are made at a time", l.PerRound)
	case g.round >= mostPods:
		return refuse(RoundLimit, "%d pods are made at a time", mostPods)
	case owner != "" && reached(g.in.Users[owner].Pods+g.users[owner], l.PerUser):
		return refuse(UserLimit, "the user's limit of %d pods is reached", l.PerUser)
	}
	return refusal{}
}

// group says why no pod is made for a group.
func (g *gates) group(group, idle int) refusal {
	if allowed := g.in.Policy.Ramp.Allows(idle); g.coming[group] >= allowed {
		return refuse(Ramping, "%d pods are on their way for %d such jobs, more follow when they have come", g.coming[group], idle)
	}
	return refusal{}
}

// fit says why no pod of a shape is made for a group.
func (g *gates) fit(group int, f Fit) refusal {
	if f.Bounded && g.made[[2]int{group, g.in.Shapes[f.Shape].Template}] >= f.Most {
		return refusal{Untaken, f.Why}
	}
	return g.shape(f.Shape)
}

// shape says why no pod of a shape is made.
func (g *gates) shape(shape int) refusal {
	s := g.in.Shapes[shape]
	t := g.in.Templates[s.Template]
	switch {
	case s.Closed != "":
		return refuse(ShapeRefused, "%s/%s: %s", t.Name, s.Name, s.Closed)
	case reached(g.shapes[shape], s.MaxPods):
		return refuse(ShapeLimit, "the limit of %d pods of the shape %s of %s is reached", s.MaxPods, s.Name, t.Name)
	case reached(g.template[s.Template], t.MaxPods):
		return refuse(TemplateLimit, "the limit of %d pods of %s is reached", t.MaxPods, t.Name)
	case reached(g.arriving[s.Template], t.MaxComing):
		return refuse(TemplateComing, "%d pods of %s have not reported yet, which is its limit", t.MaxComing, t.Name)
	case g.trying[s.Template] >= t.Allowance:
		return refuse(BackOff, "%s: %s", t.Name, t.AllowanceWhy)
	}
	for other, n := range g.stuck {
		// Where a pod has no room, one that is not smaller has none either.
		if o := g.in.Shapes[other]; n > 0 && o.Template == s.Template && s.Size.Fits(o.Size) {
			return refuse(NoNode, "%d pods of the shape %s of %s wait for a node with room", n, o.Name, t.Name)
		}
	}
	if at, ok := g.in.Memory.Withdrawn[g.in.key(shape)]; ok {
		if since := g.in.Now.Sub(at); since >= 0 && since < g.in.Policy.Settle {
			return refuse(JustWithdrawn, "a pod of the shape %s of %s was withdrawn less than %s ago", s.Name, t.Name, g.in.Policy.Settle)
		}
	}
	return refusal{}
}

func reached(n, limit int) bool { return limit > 0 && n >= limit }

// key names a shape across decisions.
func (in *Input) key(shape int) string {
	s := in.Shapes[shape]
	return in.Templates[s.Template].Name + "/" + s.Name
}

// score is how good a shape is for the next pod of a group.
type score struct {
	rank float64
	used float64 // the part of the pod that jobs of the group would use
	size resources.Amount
	pods int // pods of the shape that are there, so that shapes stay few
}

// score looks at the jobs of the group that have no place yet.
func (p *pass) score(g int, fit Fit) score {
	size := p.in.Shapes[fit.Shape].Size
	t := turns(p.in.Policy.Horizon-p.in.Policy.Start, p.in.Groups[g].Runtime)
	beside := size.Times(fit.Request, int64((p.idle[g]+t-1)/t))
	used := float64(beside) * size.Use(fit.Request)
	return score{rank: fit.Rank, used: used, size: size, pods: p.gates.shapes[fit.Shape]}
}

// alike is how much the used parts of two shapes may differ without a preference.
const alike = 0.05

// better prefers, in this order, what site and jobs rank higher, what wastes
// less, what is smaller, and what is there already. A small pod ends with its job;
// a large one lasts as long as any of its jobs, and the rest of it is wasted.
func (s score) better(o score) bool {
	if s.rank != o.rank {
		return s.rank > o.rank
	}
	if d := s.used - o.used; d > alike || d < -alike {
		return d > 0
	}
	return cmp.Or(cmp.Compare(o.size.CPUs, s.size.CPUs), cmp.Compare(o.size.Memory, s.size.Memory), cmp.Compare(s.pods, o.pods)) > 0
}
