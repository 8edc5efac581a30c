package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"podstarter/provisioner/decision"
)

// mostAds bounds the units for which ads are published, whatever limits say.
const mostAds = 2000

// Input is all that a decision depends on.
type Input struct {
	// Base has time, shapes, templates, pods that have not ended, limits and policy.
	// Its groups and users do not count.
	Base decision.Input
	// Gone are units that have ended and are still in the platform's list.
	Gone map[string]bool
	// Offers are what the collector has, one for each unit.
	Offers []Offer
	// Spare is for how many units of a shape that is not there ads are published.
	Spare int
	// Cycle is when the last negotiation cycle that has ended began, by the clock of
	// the negotiator; zero if that is unknown.
	Cycle time.Time
	// Memory is what the last decision wanted remembered.
	Memory Memory
}

// Offer is the ads of one unit.
type Offer struct {
	Unit  string
	Shape int // index in Base.Shapes; -1 if that is no longer configured
	// Matched is when the negotiator last matched one of them, by its own clock; zero
	// if it never did.
	Matched time.Time
}

// Role is what an offer is for.
type Role int

// The roles of offers, in the order in which the negotiator should prefer them.
const (
	Coming Role = iota // the unit is on its way
	Spare              // the unit can be made
	Stuck              // the unit is there, and no node has room for it
)

// Output is a decision, with its reasons.
type Output struct {
	// Create are the units to be made. Each has an offer in Keep.
	Create []Offer
	// Keep are the offers that stay, or come back, and New is how many further ones
	// of each shape are needed, under names that were never used.
	Keep []Kept
	New  []int
	// Take are the units whose ads are taken back.
	Take []Taken
	// Withdraw are the units that no job wants any more. Their ads are in Take.
	Withdraw []decision.Withdrawal
	// Refused says, for each shape, why it has no spare offers; it is empty if it has.
	Refused []string
	Memory  Memory
}

// Kept is an offer that stays.
type Kept struct {
	Offer
	Role Role
}

// Taken is an offer that is taken back.
type Taken struct{ Unit, Why string }

// Memory is what one decision wants the next one to know. If it is lost, units are
// withdrawn a little later.
type Memory struct {
	// Wanted has, for each unit that has not begun, its last match and when that was
	// first seen.
	Wanted map[string]Sighting
	// Withdrawn has, for each shape, when a unit of it was last withdrawn.
	Withdrawn map[string]time.Time
}

// Sighting is when a match was first seen.
type Sighting struct{ Matched, Seen time.Time }

// Decide decides what is made, withdrawn and offered.
func Decide(in Input) Output {
	in.Base.Memory = decision.Memory{Withdrawn: in.Memory.Withdrawn}
	p := &pass{in: &in, pods: map[string]int{}}
	p.out.New, p.out.Refused = make([]int, len(in.Base.Shapes)), make([]string, len(in.Base.Shapes))
	for i, pod := range in.Base.Pods {
		p.pods[pod.ID] = i
	}
	p.sort()
	p.follow()
	p.tally = decision.NewTally(&in.Base)
	p.create()
	p.offer()
	return p.out
}

// pass is one decision while it is made.
type pass struct {
	in    *Input
	out   Output
	pods  map[string]int // indexes in Base.Pods, by unit
	tally *decision.Tally

	coming  map[string]Offer // of units that are there
	matched []Offer
	spare   []Offer
}

// sort finds what each offer is for.
func (p *pass) sort() {
	p.coming = map[string]Offer{}
	seen := map[string]bool{}
	for _, o := range p.in.Offers {
		if seen[o.Unit] {
			continue
		}
		seen[o.Unit] = true
		i, there := p.pods[o.Unit]
		switch {
		case p.in.Gone[o.Unit]:
			p.take(o, "its pod has ended")
		case there && p.in.Base.Pods[i].Phase >= decision.Reported:
			p.take(o, "its pod has reported")
		case there:
			p.coming[o.Unit] = o
		case o.Shape < 0 || o.Shape >= len(p.in.Base.Shapes):
			p.take(o, "its shape is not configured")
		case !o.Matched.IsZero():
			p.matched = append(p.matched, o)
		default:
			p.spare = append(p.spare, o)
		}
	}
	slices.SortFunc(p.matched, func(a, b Offer) int {
		return cmp.Or(a.Matched.Compare(b.Matched), cmp.Compare(a.Unit, b.Unit))
	})
	slices.SortFunc(p.spare, func(a, b Offer) int { return cmp.Compare(a.Unit, b.Unit) })
}

func (p *pass) take(o Offer, why string) { p.out.Take = append(p.out.Take, Taken{o.Unit, why}) }

func (p *pass) keep(o Offer, role Role) { p.out.Keep = append(p.out.Keep, Kept{o, role}) }

// follow looks after the units that are there: it keeps or renews the offers of
// those on their way, and withdraws those whose offers match no longer.
func (p *pass) follow() {
	in := p.in
	p.out.Memory = Memory{Wanted: map[string]Sighting{}, Withdrawn: map[string]time.Time{}}
	for key, at := range in.Memory.Withdrawn {
		// A clock that was set back must not keep a shape closed.
		if since := in.Base.Now.Sub(at); since >= 0 && since < in.Base.Policy.Settle {
			p.out.Memory.Withdrawn[key] = at
		}
	}
	for i, pod := range in.Base.Pods {
		if pod.Phase >= decision.Reported {
			continue
		}
		o, offered := p.coming[pod.ID]
		if !offered {
			o = Offer{Unit: pod.ID}
		}
		o.Shape = pod.Shape
		if pod.Phase == decision.Pending {
			if why := p.unwanted(pod, o); why != "" {
				p.out.Withdraw = append(p.out.Withdraw, decision.Withdrawal{Pod: i, Why: why})
				if offered {
					p.take(o, "its pod is withdrawn")
				}
				if pod.Shape >= 0 {
					p.out.Memory.Withdrawn[in.Base.Key(pod.Shape)] = in.Base.Now
				}
				continue
			}
		}
		switch {
		case pod.Shape < 0 && offered:
			p.take(o, "its shape is not configured")
		case pod.Shape < 0:
		case pod.Stuck:
			p.keep(o, Stuck)
		default:
			p.keep(o, Coming)
		}
	}
	in.Base.Memory.Withdrawn = p.out.Memory.Withdrawn
}

// unwanted says why a unit that has not begun is not needed any more; it is empty
// if it is, or if that is not known.
func (p *pass) unwanted(pod decision.Pod, o Offer) string {
	now := p.in.Base.Now
	last, known := p.in.Memory.Wanted[pod.ID]
	// The collector may have lost the ad, and the match with it.
	if !known || last.Seen.After(now) || !o.Matched.IsZero() && !o.Matched.Equal(last.Matched) {
		last = Sighting{Matched: o.Matched, Seen: now}
	}
	settle := p.in.Base.Policy.Settle
	// A negotiator that does not negotiate says nothing of what is wanted.
	since := last.Matched
	switch {
	case since.IsZero():
		since = pod.Created.Add(settle)
	case since.After(now.Add(settle)):
		// Whoever may advertise can write a time that is years ahead, which the ad would
		// keep.
		since = last.Seen
	}
	if now.Sub(last.Seen) >= settle && now.Sub(pod.Created) >= settle && p.in.Cycle.After(since) {
		return fmt.Sprintf("the negotiator has matched no job with it for %s", now.Sub(last.Seen).Round(time.Second))
	}
	p.out.Memory.Wanted[pod.ID] = last
	return ""
}

// create makes the units whose offers match, in the order of their matches.
func (p *pass) create() {
	for _, o := range p.matched {
		if p.tally.Full() {
			p.keep(o, Spare) // it is its turn next time
			continue
		}
		if why := p.tally.Refuses(o.Shape); why != "" {
			p.take(o, why)
			continue
		}
		p.tally.Made(o.Shape)
		p.out.Create = append(p.out.Create, o)
		p.keep(o, Coming)
	}
}

// offer settles how many spare offers each shape has: as many as units of it may be
// made now, so that a place where none may has none.
func (p *pass) offer() {
	have := make([]int, len(p.in.Base.Shapes))
	room := make([]int, len(p.in.Base.Shapes))
	for s := range room {
		next := p.tally.Later()
		for room[s] < p.in.Spare {
			if why := next.Refuses(s); why != "" {
				p.out.Refused[s] = why
				break
			}
			if next.Full() {
				break
			}
			next.Made(s)
			room[s]++
		}
		if room[s] > 0 {
			p.out.Refused[s] = ""
		}
	}
	for _, k := range p.out.Keep {
		if k.Role == Spare {
			have[k.Shape]++
		}
	}
	for _, o := range p.spare {
		switch {
		case have[o.Shape] < room[o.Shape]:
			have[o.Shape]++
			p.keep(o, Spare)
		case p.out.Refused[o.Shape] != "":
			p.take(o, p.out.Refused[o.Shape])
		default:
			p.take(o, "fewer pods of the shape may be made now")
		}
	}
	total := len(p.out.Keep)
	for s := range room {
		p.out.New[s] = max(min(room[s]-have[s], mostAds-total), 0)
		total += p.out.New[s]
	}
	slices.SortFunc(p.out.Keep, func(a, b Kept) int { return strings.Compare(a.Unit, b.Unit) })
	slices.SortFunc(p.out.Take, func(a, b Taken) int { return strings.Compare(a.Unit, b.Unit) })
}
