package round

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
	"podstarter/provisioner/advert"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/offline"
	"podstarter/provisioner/platform"
)

// Market is a pool whose negotiator matches jobs with offline ads.
type Market interface {
	// Offers returns the provisioner's offline ads. If some cannot be read, it returns
	// the others, with an error; if nothing is known, nil.
	Offers(ctx context.Context) ([]advert.Offer, error)
	// Cycle returns when the last negotiation cycle that has ended began.
	Cycle(ctx context.Context) (time.Time, error)
	Advertise(ctx context.Context, ads []*classads.Ad) error
	Invalidate(ctx context.Context, ads []*classads.Ad) error
}

// Offline says that units are made for matches of offline ads, in place of idle
// jobs.
type Offline struct {
	Market Market
	// Spare is for how many units of a shape that is not there ads are published.
	Spare int
	// Lifetime is how long the collector keeps an ad that is not renewed.
	Lifetime time.Duration
}

// stall is what a round remembers of the ads that it has published.
type stall struct {
	memory offline.Memory
	sent   map[string]sent // by unit
}

// sent is how the ads of a unit were last published.
type sent struct {
	role offline.Role
	at   time.Time
}

// wanting is the group of all jobs that match offline ads: whose they are is not
// known.
const wanting = "offline"

// runOffline does one round.
func (r *Round) runOffline(ctx context.Context, rep *Report) {
	for _, s := range r.shapes {
		rep.Shapes = append(rep.Shapes, s.slot.ID)
	}
	s, offers, cycle := r.lookOffline(ctx, rep)
	rep.Units = s.units
	// Without knowing what is there, a round could make pods twice.
	if s.unknown {
		rep.Unknown = true
		r.health.blind()
		return
	}
	if learnt := r.learnAds(ctx, s, rep); r.measure(s, rep.At) || learnt {
		r.offers = r.offer()
	}
	rep.Smaller = r.smaller()
	rep.Failed = r.follow(s, rep.At)
	rep.Silent = r.silent(rep)
	if slices.ContainsFunc(offers, func(o advert.Offer) bool { return !o.Matched.IsZero() }) {
		s.groups = []demand.Group{{ID: wanting}}
	}
	r.takers.look(s.units, s.slots, s.groups, rep.At)
	s.groups = nil
	rep.Input = r.input(s, *rep)
	in := offline.Input{Base: rep.Input, Gone: map[string]bool{}, Spare: r.config.Offline.Spare, Cycle: cycle, Memory: r.market.memory}
	for _, u := range s.units {
		if u.Phase == platform.Ended {
			in.Gone[u.Name] = true
		}
	}
	for _, o := range offers {
		in.Offers = append(in.Offers, offline.Offer{Unit: o.Unit, Shape: r.index(o.Template, o.Shape), Matched: o.Matched})
	}
	out := offline.Decide(in)
	rep.Offline = &out
	if r.config.DryRun {
		return
	}
	r.market.memory = out.Memory
	r.actOffline(ctx, rep, offers)
}

// lookOffline asks pool and platform at once.
func (r *Round) lookOffline(ctx context.Context, rep *Report) (s sight, offers []advert.Offer, cycle time.Time) {
	var offersErr, cycleErr error
	market := r.config.Offline.Market
	var wg sync.WaitGroup
	wg.Go(func() { offers, offersErr = market.Offers(ctx) })
	wg.Go(func() { cycle, cycleErr = market.Cycle(ctx) })
	s = r.lookUnits(ctx, rep)
	wg.Wait()
	rep.note(Collector, offersErr)
	rep.note(Collector, cycleErr)
	s.unknown = s.unknown || offersErr != nil && offers == nil
	return s, offers, cycle
}

// lookUnits asks for units and their slots.
func (r *Round) lookUnits(ctx context.Context, rep *Report) sight {
	var s sight
	var slotsErr, unitsErr error
	var wg sync.WaitGroup
	wg.Go(func() { s.slots, slotsErr = r.pool.Slots(ctx) })
	wg.Go(func() { s.units, unitsErr = r.list(ctx) })
	wg.Wait()
	s.unknown = slotsErr != nil && s.slots == nil || unitsErr != nil
	s.unread = slotsErr != nil
	rep.note(Collector, slotsErr)
	rep.note(Platform, unitsErr)
	return s
}

// index returns that of a shape, or -1 if it is not configured.
func (r *Round) index(of int, name string) int {
	return slices.IndexFunc(r.shapes, func(s shape) bool { return s.template == of && s.Name == name })
}

// actOffline does what was decided. Units are made before anything is taken back:
// of a provisioner that ends in between, the next one finds the unit with its ads.
func (r *Round) actOffline(ctx context.Context, rep *Report, offers []advert.Offer) {
	failed, goOn := r.makeOffline(ctx, rep)
	if !goOn {
		return
	}
	err := r.takeBack(ctx, rep.Offline, offers, failed)
	rep.note(Collector, err)
	// After its ads, and not without that: a job that matches them would wait for a unit
	// that goes, and the match that they have would make it again.
	if err == nil {
		if !r.withdraw(ctx, rep, rep.Offline.Withdraw) {
			return
		}
	}
	if !r.endUnreported(ctx, rep) {
		return
	}
	rep.note(Collector, r.publish(ctx, rep, offers, failed))
	rep.note(Making, r.mend(ctx))
}

// makeOffline makes the units, and returns those that the platform refused, and
// whether the round may go on. After an error that is no refusal the match is still
// there in the next round, and so is the name; other templates are tried, as in act.
func (r *Round) makeOffline(ctx context.Context, rep *Report) (denied map[string]bool, goOn bool) {
	refused, failed, denied := map[int]bool{}, map[int]bool{}, map[string]bool{}
	late := map[string]bool{}
	failures := 0
	for _, o := range rep.Offline.Create {
		s := r.shapes[o.Shape]
		switch {
		case refused[o.Shape]:
			denied[o.Unit] = true
			continue
		case failed[s.template] || failures == maxFailures:
			late[o.Unit] = true
			continue
		}
		name := r.config.Templates[s.template].Name
		spec := platform.Spec{Name: o.Unit, Template: name, Shape: s.Name, Size: s.Size, Group: wanting}
		err := r.call(ctx, func(ctx context.Context) error { return r.platform.Create(ctx, spec) })
		if err == nil {
			r.health.accepted(s.slot.ID, o.Unit)
			rep.Made = append(rep.Made, o.Unit)
			continue
		}
		rep.note(Making, fmt.Errorf("making a pod of the template %s in the shape %s: %w", name, s.Name, err))
		switch {
		case stopped(err):
			return denied, false
		case errors.Is(err, platform.ErrDenied):
			r.health.denied(s.slot.ID, rep.At)
			refused[o.Shape], denied[o.Unit] = true, true
		default:
			failed[s.template], late[o.Unit] = true, true
			failures++
		}
	}
	rep.Offline.Keep = slices.DeleteFunc(rep.Offline.Keep, func(k offline.Kept) bool { return late[k.Unit] })
	return denied, true
}

// takeBack invalidates the ads of units that need none any more.
func (r *Round) takeBack(ctx context.Context, out *offline.Output, offers []advert.Offer, failed map[string]bool) error {
	gone := map[string]bool{}
	for _, t := range out.Take {
		gone[t.Unit] = true
	}
	for unit := range failed {
		gone[unit] = true
	}
	var list []*classads.Ad
	for _, o := range offers {
		if gone[o.Unit] {
			list = append(list, advert.Invalidations(o.Unit, o.Shape, advert.Slots(r.config.Templates[o.Template]))...)
		}
	}
	if r.lost() {
		return errLost
	}
	return r.config.Offline.Market.Invalidate(ctx, list)
}

// publish sends new ads, those whose role has changed, and those that are old.
func (r *Round) publish(ctx context.Context, rep *Report, offers []advert.Offer, failed map[string]bool) error {
	there := map[string]int{}
	for _, o := range offers {
		there[o.Unit] = max(there[o.Unit], o.Ads)
	}
	var list []*classads.Ad
	var units []string
	before := r.market.sent
	r.market.sent = map[string]sent{}
	form := func(o offline.Offer, role offline.Role) {
		s := r.shapes[o.Shape]
		rank := map[offline.Role]advert.Rank{offline.Coming: advert.First, offline.Spare: advert.Second, offline.Stuck: advert.Third}[role]
		list = append(list, advert.Ads(advert.Form{
			Unit: o.Unit, Template: r.config.Templates[s.template], Shape: s.promise, Slot: r.offers[o.Shape].Ad,
			Rank: rank, Matched: o.Matched, Lifetime: r.config.Offline.Lifetime,
		})...)
		r.market.sent[o.Unit] = sent{role: role, at: rep.At}
		units = append(units, o.Unit)
	}
	for _, k := range rep.Offline.Keep {
		if failed[k.Unit] {
			continue
		}
		last, known := before[k.Unit]
		age := rep.At.Sub(last.at)
		whole := there[k.Unit] >= advert.Slots(r.config.Templates[r.shapes[k.Shape].template])
		if !known || !whole || last.role != k.Role || age < 0 || age > r.config.Offline.Lifetime/3 {
			form(k.Offer, k.Role)
		} else {
			r.market.sent[k.Unit] = last
		}
	}
	for i, n := range rep.Offline.New {
		for range n {
			name := fmt.Sprintf("%s-%s-%s", r.config.Prefix, r.config.Templates[r.shapes[i].template].Name, r.config.Suffix())
			form(offline.Offer{Unit: name, Shape: i}, offline.Spare)
		}
	}
	err := errLost
	if !r.lost() {
		err = r.config.Offline.Market.Advertise(ctx, list)
	}
	if err != nil {
		// Nobody knows which of them have come; the next round sends them again.
		for _, u := range units {
			delete(r.market.sent, u)
		}
	}
	rep.Published = len(list)
	return err
}

// lost reports whether another provisioner may act by now, whose ads are its own.
func (r *Round) lost() bool {
	return r.config.Until != nil && !time.Now().Before(r.config.Until())
}

// End takes all ads back. The next provisioner publishes its own; until then no job
// waits for a pod that nobody makes.
func (r *Round) End(ctx context.Context) error {
	if r.config.Offline == nil || r.config.DryRun || r.lost() {
		return nil
	}
	market := r.config.Offline.Market
	offers, err := market.Offers(ctx)
	var list []*classads.Ad
	for _, o := range offers {
		list = append(list, advert.Invalidations(o.Unit, o.Shape, advert.Slots(r.config.Templates[o.Template]))...)
	}
	if wrong := multierror.Append(nil, err, market.Invalidate(ctx, list)).ErrorOrNil(); wrong != nil {
		return fmt.Errorf("taking the offline ads back: %w", wrong)
	}
	return nil
}
