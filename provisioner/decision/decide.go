package decision

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"time"

	"podstarter/provisioner/resources"
)

// Bounds of one decision, whatever a schedd says of the number of its jobs, and a
// slot of its size. The next decision goes on.
const (
	mostJobs = 1_000_000 // that get a place
	mostPods = 1000      // that are made
)

// Decide decides which pods are made and which are withdrawn.
func Decide(in Input) Output {
	p := newPass(&in)
	for users := queue(&in); users.Len() > 0; {
		user := users[0]
		if p.serve(user) {
			heap.Fix(&users, 0)
		} else {
			heap.Pop(&users)
		}
	}
	p.withdraw()
	return p.out
}

// pass is one decision while it is made.
type pass struct {
	in    *Input
	out   Output
	rooms rooms
	stuck rooms
	// taken has, for each pod of the input, whether a job takes room of it.
	taken []bool
	// next has, for each group and each of its fits, the first room that may still
	// be large enough. Rooms only shrink, so that none before it is.
	next [][]int
	// spare counts places that a job of the group left within the horizon, by kind.
	spare [][made + 1]int
	// idle counts the jobs of each group that have no place yet.
	idle []int
	// placed counts the jobs that have one.
	placed int
	gates  gates
}

func newPass(in *Input) *pass {
	p := &pass{
		in:    in,
		taken: make([]bool, len(in.Pods)),
		next:  make([][]int, len(in.Groups)),
		spare: make([][made + 1]int, len(in.Groups)),
		idle:  make([]int, len(in.Groups)),
		gates: newGates(in),
	}
	p.rooms, p.stuck = survey(in)
	p.out.Groups = make([]Outcome, len(in.Groups))
	for g, group := range in.Groups {
		p.next[g] = make([]int, len(p.fits(g)))
		p.idle[g] = group.Idle()
		p.out.Groups[g].Idle = p.idle[g]
	}
	return p
}

// fits returns the shapes that a group matches.
func (p *pass) fits(g int) []Fit {
	if g >= len(p.in.Fits) {
		return nil
	}
	return p.in.Fits[g]
}

// serve finds a place for the user's next job. If there is none for it, there is
// none for the user's other jobs of the same group. It reports whether the user
// has more jobs.
func (p *pass) serve(user *claimant) bool {
	if len(user.parts) == 0 {
		return false
	}
	next := &user.parts[0]
	g := next.group
	placed, request, why := false, resources.Amount{}, refuse(RoundLimit, "places are found for %d jobs at a time", mostJobs)
	if p.placed < mostJobs {
		placed, request, why = p.place(g, user)
	}
	if !placed {
		p.out.Groups[g].wait(next.idle, why)
		p.idle[g] -= next.idle
		user.parts = user.parts[1:]
		return len(user.parts) > 0
	}
	// The negotiator charges a job for its CPUs (SLOT_WEIGHT).
	user.usage += float64(max(request.CPUs, 1))
	p.idle[g]--
	p.placed++
	if next.idle--; next.idle == 0 {
		user.parts = user.parts[1:]
	}
	return len(user.parts) > 0
}

// place gives one job of a group the first place that it fits into.
func (p *pass) place(g int, user *claimant) (placed bool, request resources.Amount, why refusal) {
	fits := p.fits(g)
	if len(fits) == 0 {
		return false, resources.Amount{}, refuse(NoMatch, "no template has slots that match")
	}
	// Preferred places may be in any of the shapes, so look for the best kind of all.
	best, bestFit := kind(-1), -1
	for kind := free; kind <= made; kind++ {
		if p.spare[g][kind] > 0 {
			best = kind
			break
		}
	}
	for f, fit := range fits {
		r := p.find(g, f, fit)
		if r != nil && (best < 0 || r.kind < best || r.kind == best && r.kind >= coming && bestFit >= 0 && p.closer(fit, fits[bestFit])) {
			best, bestFit = r.kind, f
		}
	}
	switch {
	case best < 0:
		f, why := p.open(g, user)
		if f < 0 {
			if fit := p.rely(g); fit != nil {
				p.out.Groups[g].place(coming)
				return true, fit.Request, refusal{}
			}
			return false, resources.Amount{}, why
		}
		p.take(g, f)
		p.out.Groups[g].place(made)
		return true, fits[f].Request, refusal{}
	case bestFit < 0:
		p.spare[g][best]--
		bestFit = 0
	default:
		p.take(g, bestFit)
	}
	p.out.Groups[g].place(best)
	return true, fits[bestFit].Request, refusal{}
}

// closer reports whether a pod on its way in one shape is the one that would be made
// for such a job, rather than one in the other: what ranks higher, and of equals the
// smaller one. If small jobs took large pods, the next decision would make others for
// the jobs that need those.
func (p *pass) closer(a, b Fit) bool {
	if a.Rank != b.Rank {
		return a.Rank > b.Rank
	}
	x, y := p.in.Shapes[a.Shape].Size, p.in.Shapes[b.Shape].Size
	return cmp.Or(cmp.Compare(x.GPUs, y.GPUs), cmp.Compare(x.CPUs, y.CPUs), cmp.Compare(x.Memory, y.Memory)) < 0
}

// find returns the first room of a shape that is large enough, or nil.
func (p *pass) find(g, f int, fit Fit) *room {
	all := p.rooms[fit.Shape]
	for ; p.next[g][f] < len(all); p.next[g][f]++ {
		if r := &all[p.next[g][f]]; r.takes(fit) {
			return r
		}
	}
	return nil
}

// rely counts on a pod that is stuck, and returns the fit of its shape, or nil if
// there is none. Such pods are few: their template waits.
func (p *pass) rely(g int) *Fit {
	for f, fit := range p.fits(g) {
		for i := range p.stuck[fit.Shape] {
			if r := &p.stuck[fit.Shape][i]; r.takes(fit) {
				r.left = r.left.Minus(fit.Request)
				if fit.Request == (resources.Amount{}) {
					r.left = resources.Amount{}
				}
				p.taken[r.pod] = true
				return &p.fits(g)[f]
			}
		}
	}
	return nil
}

// take takes the room that find has found, and notes which jobs of the group can
// follow in the same place.
func (p *pass) take(g, f int) {
	fit := p.fits(g)[f]
	r := &p.rooms[fit.Shape][p.next[g][f]]
	r.left = r.left.Minus(fit.Request)
	if fit.Request == (resources.Amount{}) {
		r.left = resources.Amount{} // whoever asks for nothing gets a place of its own all the same
	}
	if r.group < 0 {
		r.group = g
		if r.kind == coming {
			p.gates.coming[g]++
		}
	}
	if r.pod >= 0 {
		p.taken[r.pod] = true
	}
	p.spare[g][r.kind] += turns(r.time, p.in.Groups[g].Runtime) - 1
}

// open makes a pod for the next job of a group, if it may be made, and leaves the
// cursor of the returned fit at its room. If none may, the fit is -1.
func (p *pass) open(g int, user *claimant) (fit int, why refusal) {
	owner := user.parts[0].owner
	if why := p.gates.user(owner); why != (refusal{}) {
		return -1, why
	}
	if why := p.gates.group(g, p.out.Groups[g].Idle); why != (refusal{}) {
		return -1, why
	}
	best, bestScore := -1, score{}
	var refused []refusal
	var notFor refusal
	for f, candidate := range p.fits(g) {
		if !p.in.Shapes[candidate.Shape].Size.Fits(candidate.Request) {
			continue
		}
		if candidate.NotFor != "" {
			notFor = refusal{NeedsNoGPU, candidate.NotFor}
			continue
		}
		if why := p.gates.fit(g, candidate); why != (refusal{}) {
			if !slices.Contains(refused, why) {
				refused = append(refused, why)
			}
			continue
		}
		if s := p.score(g, candidate); best < 0 || s.better(bestScore) {
			best, bestScore = f, s
		}
	}
	switch {
	case best < 0 && len(refused) == 0 && notFor != (refusal{}):
		return -1, notFor
	case best < 0 && len(refused) == 0:
		return -1, refuse(TooLarge, "all shapes that match are smaller than the request")
	case best < 0:
		return -1, together(refused)
	}
	shape := p.fits(g)[best].Shape
	there := p.in.Policy.Horizon - p.in.Policy.Start
	if life := p.in.Shapes[shape].Lifetime; life > 0 {
		there = min(there, life)
	}
	p.rooms[shape] = append(p.rooms[shape], room{kind: made, pod: -1, left: p.in.Shapes[shape].Size, time: max(there, 0), group: g})
	p.next[g][best] = len(p.rooms[shape]) - 1
	p.gates.opened(g, shape)
	p.gates.users[owner]++
	p.create(Creation{Shape: shape, Count: 1, User: owner, Group: g})
	return best, refusal{}
}

// together joins refusals; the first one is the cause.
func together(all []refusal) refusal {
	texts := make([]string, len(all))
	for i, r := range all {
		texts[i] = r.why
	}
	return refusal{all[0].cause, strings.Join(texts, "; ")}
}

// create notes a pod to be made.
func (p *pass) create(c Creation) {
	for i := range p.out.Create {
		if k := &p.out.Create[i]; k.Shape == c.Shape && k.User == c.User && k.Group == c.Group {
			k.Count += c.Count
			return
		}
	}
	p.out.Create = append(p.out.Create, c)
}

// withdraw removes pods on their way that no job has taken for a while.
func (p *pass) withdraw() {
	in := p.in
	p.out.Memory = Memory{Surplus: map[string]time.Time{}, Withdrawn: map[string]time.Time{}}
	for key, at := range in.Memory.Withdrawn {
		// A clock that was set back must not keep a shape closed.
		if since := in.Now.Sub(at); since >= 0 && since < in.Policy.Settle {
			p.out.Memory.Withdrawn[key] = at
		}
	}
	for i, pod := range in.Pods {
		if pod.Phase != Pending || p.taken[i] {
			continue
		}
		since, known := in.Memory.Surplus[pod.ID]
		if !known || since.After(in.Now) {
			since = in.Now
		}
		// No job is known of the pods of a shape that was taken out of the
		// configuration; they are withdrawn the same way.
		settled := in.Now.Sub(since) >= in.Policy.Settle && in.Now.Sub(pod.Created) >= in.Policy.Settle
		if in.Partial || !settled {
			if !in.Partial || known {
				p.out.Memory.Surplus[pod.ID] = since
			}
			continue
		}
		p.out.Withdraw = append(p.out.Withdraw, Withdrawal{Pod: i, Why: fmt.Sprintf("no idle job has needed it for %s", in.Now.Sub(since).Round(time.Second))})
		if pod.Shape >= 0 {
			p.out.Memory.Withdrawn[in.key(pod.Shape)] = in.Now
		}
	}
	slices.SortStableFunc(p.out.Create, func(a, b Creation) int {
		return cmp.Or(cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.User, b.User), cmp.Compare(a.Group, b.Group))
	})
}
