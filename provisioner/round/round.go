package round

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/match"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/runtimes"
	"podstarter/provisioner/supply"
	"podstarter/provisioner/template"
)

// Pool is the HTCondor pool as the provisioner sees it.
type Pool interface {
	// Demand returns the groups of idle jobs. If some access points did not answer,
	// it returns the groups of the others, with an error of demand.ErrPartial.
	// Groups differ also in other attributes of jobs.
	Demand(ctx context.Context, others []string) ([]demand.Group, error)
	// Slots returns what the collector knows of pods, by name. If some ads cannot be
	// read, it returns the others, with an error; if nothing is known, nil.
	Slots(ctx context.Context) (map[string]*supply.Pod, error)
	// Ads returns what slots advertise, by their names. If some cannot be read, it
	// returns the others, with an error.
	Ads(ctx context.Context, slots []string) (map[string]*classads.Ad, error)
	// Users returns priorities and usage of submitters, by name.
	Users(ctx context.Context) (map[string]decision.User, error)
}

// Config is what does not change from round to round.
type Config struct {
	// Prefix begins the names of all units, with a hyphen after it.
	Prefix    string
	Templates []template.Template
	Limits    decision.Limits
	Policy    decision.Policy
	// Runtime says of a job how many seconds it runs at most, or is nil.
	Runtime *classads.Expr
	// ReportWithin is how long a unit that runs may take to report.
	ReportWithin time.Duration
	// BeginWithin is how long a unit that has a node may take to begin; 0 is
	// platform.DefaultBeginWithin.
	BeginWithin time.Duration
	// DryRun: nothing is made or withdrawn.
	DryRun bool
	// CallTime is how long a call of the platform may take that makes or withdraws a
	// unit; 0 is DefaultCallTime.
	CallTime time.Duration
	// Until returns until when this provisioner may make and withdraw units: after
	// that, another one may do so. Nil is for ever.
	Until func() time.Time
	Now   func() time.Time
	// Spent is the clock by which the time is measured that evaluations of expressions
	// take; nil is time.Now.
	Spent func() time.Time
	// Suffix returns the end of a new unit's name.
	Suffix func() string
	// Offline, if it is not nil, says that units are made for matches of offline ads.
	Offline *Offline
}

// DefaultCallTime is how long a call may take that makes or withdraws a unit. An
// API server answers in milliseconds, and a round has up to a thousand such calls.
const DefaultCallTime = 5 * time.Second

// Errors of a round that did not do all that was decided.
var (
	errEnds = errors.New("the provisioner ends")
	errLost = errors.New("the lease may be lost, so that another provisioner may begin")
)

// Round is a provisioner between rounds. Only one goroutine may use it.
type Round struct {
	config   Config
	pool     Pool
	platform platform.Platform
	matcher  *match.Matcher
	memory   decision.Memory
	health   *health
	takers   takers
	runtimes runtimes.Learner
	ads      ads
	market   stall
	offers   []match.Slot // what new pods would have, by shape
	shapes   []shape
	sizes    []sizes // by shape
}

// shape is a shape with its template.
type shape struct {
	template int
	template.Shape
	// promise is the shape as pods of it turned out to be.
	promise template.Shape
	slot    match.Slot
}

// New returns a provisioner that knows nothing yet.
func New(c Config, pool Pool, p platform.Platform) *Round {
	if c.CallTime == 0 {
		c.CallTime = DefaultCallTime
	}
	if c.BeginWithin == 0 {
		c.BeginWithin = platform.DefaultBeginWithin
	}
	r := &Round{config: c, pool: pool, platform: p, matcher: match.New(c.Now, c.Spent), health: newHealth(c.ReportWithin, c.BeginWithin, c.Templates), takers: newTakers(c.Templates), market: stall{sent: map[string]sent{}}}
	for i, t := range c.Templates {
		for _, s := range t.Shapes {
			r.shapes = append(r.shapes, shape{template: i, Shape: s, promise: s, slot: match.Slot{ID: t.Name + "/" + s.Name, Ad: t.Slot(s, nil), Rank: t.Rank, Refuses: t.Refuses}})
		}
	}
	r.sizes = make([]sizes, len(r.shapes))
	r.offers = r.offer()
	return r
}

// Run does one round.
func (r *Round) Run(ctx context.Context) Report {
	begin := time.Now()
	rep := Report{At: r.config.Now()}
	r.run(ctx, &rep)
	var wrong *multierror.Error
	for _, p := range rep.Problems {
		wrong = multierror.Append(wrong, p.Err)
	}
	rep.Err = wrong.ErrorOrNil()
	for _, t := range r.config.Templates {
		rep.Backoff = append(rep.Backoff, r.health.state(t.Name, rep.At))
	}
	rep.Untaken = r.takers.untaken(r.config.Templates)
	rep.Took = time.Since(begin)
	return rep
}

func (r *Round) run(ctx context.Context, rep *Report) {
	if r.config.Offline != nil {
		r.runOffline(ctx, rep)
		return
	}
	seen := r.look(ctx, rep)
	// What slots refer to is known of jobs only after they were asked for it.
	if r.learnAds(ctx, seen, rep) {
		r.offers = r.offer()
		r.lookAgain(ctx, &seen, rep)
	}
	r.unlearn(seen.demandErr, rep.At)
	rep.Groups, rep.Units = seen.groups, seen.units
	for _, s := range r.shapes {
		rep.Shapes = append(rep.Shapes, s.slot.ID)
	}
	// Without knowing what is there, a round could make pods twice.
	if seen.unknown {
		rep.Unknown = true
		r.health.blind()
		return
	}
	if r.measure(seen, rep.At) {
		r.offers = r.offer()
	}
	rep.Smaller = r.smaller()
	rep.Failed = r.follow(seen, rep.At)
	rep.Silent = r.silent(rep)
	r.takers.look(seen.units, seen.slots, seen.groups, rep.At)
	r.learn(seen, rep.At)
	rep.Matches = r.match(seen.groups)
	rep.Input = r.input(seen, *rep)
	rep.Output = decision.Decide(rep.Input)
	r.memory = rep.Output.Memory
	if !r.config.DryRun {
		r.act(ctx, rep)
	}
}

// sight is what a round sees.
type sight struct {
	groups  []demand.Group
	slots   map[string]*supply.Pod
	users   map[string]decision.User
	units   []platform.Unit
	partial bool // not all jobs are known
	unknown bool // it is not known what is there
	// unread: some slots cannot be read, so that a unit may have reported all the same.
	unread bool
	// demandErr says why not all jobs are known.
	demandErr error
}

// look asks pool and platform at once.
func (r *Round) look(ctx context.Context, rep *Report) sight {
	var s sight
	var slotsErr, usersErr, unitsErr error
	var wg sync.WaitGroup
	wg.Go(func() { s.groups, s.demandErr = r.pool.Demand(ctx, r.ads.references()) })
	wg.Go(func() { s.slots, slotsErr = r.pool.Slots(ctx) })
	wg.Go(func() { s.users, usersErr = r.pool.Users(ctx) })
	wg.Go(func() { s.units, unitsErr = r.list(ctx) })
	wg.Wait()
	s.partial = errors.Is(s.demandErr, demand.ErrPartial)
	s.unknown = slotsErr != nil && s.slots == nil || unitsErr != nil
	s.unread = slotsErr != nil
	rep.note(Schedds, s.demandErr)
	rep.note(Collector, slotsErr)
	rep.note(Accountant, usersErr) // without priorities, all users are equal
	rep.note(Platform, unitsErr)
	return s
}

// list lists the units. Those of a shape that has another size by now are former ones.
func (r *Round) list(ctx context.Context) ([]platform.Unit, error) {
	units, err := r.platform.List(ctx)
	for i := range units {
		u := &units[i]
		if shape := r.find(*u); shape >= 0 && u.Size != (resources.Amount{}) && u.Size != r.shapes[shape].Size {
			u.Former = true
		}
	}
	return units, err
}

// lookAgain asks for the jobs again.
func (r *Round) lookAgain(ctx context.Context, s *sight, rep *Report) {
	s.groups, s.demandErr = r.pool.Demand(ctx, r.ads.references())
	s.partial = errors.Is(s.demandErr, demand.ErrPartial)
	rep.note(Schedds, s.demandErr)
}

// match finds the shapes that each group matches.
func (r *Round) match(groups []demand.Group) [][]match.Result {
	jobs := make([]match.Job, len(groups))
	for i, g := range groups {
		jobs[i] = match.Job{ID: g.ID, Ad: g.Ad, Users: g.Owners}
	}
	return r.matcher.Update(jobs, r.offers)
}

// References returns the attributes of jobs to which the slots of pods refer, as far
// as rounds have learnt it.
func (r *Round) References() []string { return r.ads.references() }

// Explain says of each shape why a job and its slots match or do not.
func (r *Round) Explain(job *classads.Ad) []match.Explanation {
	all := make([]match.Explanation, len(r.offers))
	for i, o := range r.offers {
		all[i] = match.Explain(job, o, r.config.Now)
		all[i].Slot = r.shapes[i].slot.ID
	}
	return all
}

// maxFailures is after how many calls that fail a round does no more of the same: each
// may have taken as long as a call may. One that removes nothing may make units.
const maxFailures = 4

// act makes and withdraws what was decided. It goes on after an error.
func (r *Round) act(ctx context.Context, rep *Report) {
	if !r.withdraw(ctx, rep, rep.Output.Withdraw) || !r.endUnreported(ctx, rep) {
		return
	}
	// What the platform refused once in a shape, it would refuse again. Another error
	// may be the template's own, such as a webhook that does not answer, so that those
	// of other templates are tried.
	failures, refused, failed := 0, map[int]bool{}, map[int]bool{}
	for _, c := range rep.Output.Create {
		template := r.shapes[c.Shape].template
		if failures == maxFailures {
			break
		}
		if refused[c.Shape] || failed[template] {
			continue
		}
		made, err := r.make(ctx, c, rep)
		rep.Made = append(rep.Made, made...)
		if err == nil {
			continue
		}
		rep.note(Making, err)
		if stopped(err) {
			return
		}
		if errors.Is(err, platform.ErrDenied) {
			refused[c.Shape] = true
			continue
		}
		failed[template] = true
		failures++
	}
	rep.note(Making, r.mend(ctx))
}

// withdraw removes units that have not begun. It reports whether the round may go on.
func (r *Round) withdraw(ctx context.Context, rep *Report, list []decision.Withdrawal) bool {
	failures := 0
	for _, w := range list {
		if failures == maxFailures {
			break
		}
		name := rep.Input.Pods[w.Pod].ID
		err := r.call(ctx, func(ctx context.Context) error { return r.platform.Withdraw(ctx, name) })
		switch {
		case stopped(err):
			rep.note(Withdrawing, fmt.Errorf("withdrawing %s: %w", name, err))
			return false
		case errors.Is(err, platform.ErrBegun): // it is not surplus any more
		case err != nil:
			failures++
			rep.note(Withdrawing, fmt.Errorf("withdrawing %s: %w", name, err))
		default:
			rep.Withdrawn = append(rep.Withdrawn, name)
		}
	}
	return true
}

// call lets do make or withdraw a unit, unless the provisioner ends or may not act
// any more. A call that has begun is not cut short by the end of ctx, so that it is
// known what became of it; it never lasts longer than this provisioner may act.
func (r *Round) call(ctx context.Context, do func(ctx context.Context) error) error {
	if ctx.Err() != nil {
		return errEnds
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.config.CallTime)
	defer cancel()
	if r.config.Until != nil {
		var end context.CancelFunc
		ctx, end = context.WithDeadline(ctx, r.config.Until())
		defer end()
	}
	if ctx.Err() != nil {
		return errLost
	}
	return do(ctx)
}

// stopped reports whether a round may do nothing more.
func stopped(err error) bool { return errors.Is(err, errEnds) || errors.Is(err, errLost) }

// make makes the units of one creation. It stops at the first error.
func (r *Round) make(ctx context.Context, c decision.Creation, rep *Report) ([]string, error) {
	s := r.shapes[c.Shape]
	name := r.config.Templates[s.template].Name
	var made []string
	for range c.Count {
		spec := platform.Spec{
			Name:     fmt.Sprintf("%s-%s-%s", r.config.Prefix, name, r.config.Suffix()),
			Template: name, Shape: s.Name, Size: s.Size,
			User: c.User, Group: rep.Groups[c.Group].ID,
		}
		if err := r.call(ctx, func(ctx context.Context) error { return r.platform.Create(ctx, spec) }); err != nil {
			if errors.Is(err, platform.ErrDenied) {
				r.health.denied(s.slot.ID, rep.At)
			}
			return made, fmt.Errorf("making a pod of the template %s in the shape %s: %w", name, s.Name, err)
		}
		r.health.accepted(s.slot.ID, spec.Name)
		made = append(made, spec.Name)
	}
	return made, nil
}
