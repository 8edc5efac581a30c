// Package match finds out which jobs could run in the slots of which pods, as the
// negotiator would: the job's Requirements must hold for the slot, and the
// slot's for the job.
package match

import (
	"math"
	"slices"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/provisioner/resources"
)

// Job is a group of equal jobs.
type Job struct {
	ID string
	Ad *classads.Ad
	// Users are those who have submitted such jobs.
	Users []string
}

// Slot is what a new pod would offer.
type Slot struct {
	// ID changes when the ad does.
	ID string
	Ad *classads.Ad
	// Rank is evaluated with the slot as MY and the job as TARGET; nil is 0.
	Rank *classads.Expr
	// Refuses says why a job that matches would not run in the slot, or is empty; nil
	// refuses none.
	Refuses func(job, slot *classads.Ad) string
}

// Result is what is known of a job and a slot.
type Result struct {
	Matches bool
	// Request is what the job takes of the slot.
	Request resources.Amount
	Rank    float64
	// Why says why they do not match.
	Why string
}

// Bounds of one evaluation. A job that needs more matches nothing.
var bounds = classads.Limits{Steps: 50_000, Bytes: 1 << 20}

// Times that an update may take. Jobs may come with expressions that are slow on
// purpose: they wait for their turn, and other users' jobs do not wait for them.
const (
	jobTime   = 20 * time.Millisecond
	allTime   = 2 * time.Second
	MaxAge    = 10 * time.Minute // a result is not used longer: expressions may depend on the time
	whyPend   = "its expressions are slow, and not all have been evaluated yet"
	whyMine   = "the job's Requirements do not hold for the slot"
	whyMany   = "there are more groups of jobs and shapes of pods than are matched at a time"
	whyNobody = "jobs of the parallel universe need slots that are given to their access point's dedicated scheduler (DedicatedScheduler)"
	whyTheirs = "the slot's Requirements (START) do not hold for the job"
)

// maxPairs is of how many jobs and slots it is kept whether they match: 20,000 groups
// of jobs and the 50 shapes of a large site. A pair takes some 200 bytes.
const maxPairs = 1_000_000

// Matcher keeps results from one update to the next. Only one goroutine may use it.
type Matcher struct {
	jobs  map[string]*memory
	now   func() time.Time
	spent func() time.Time // a clock of its own for the time that evaluations take
}

// memory is what is known of one job.
type memory struct {
	results map[string]Result
	since   time.Time
	cost    time.Duration // what its evaluations have taken
	used    bool
}

// New returns a matcher. The clocks are that of the expressions and that by which
// their evaluation is timed; nil is time.Now.
func New(now, spent func() time.Time) *Matcher {
	if now == nil {
		now = time.Now
	}
	if spent == nil {
		spent = time.Now
	}
	return &Matcher{jobs: map[string]*memory{}, now: now, spent: spent}
}

// Update returns a row of results for each job, in the order of the slots. What
// is known from before is not evaluated again.
func (m *Matcher) Update(jobs []Job, slots []Slot) [][]Result {
	rows := make([][]Result, len(jobs))
	most := max(maxPairs/max(len(slots), 1), 1) // of jobs
	var left []Result                           // the row of all others
	var t turns
	for i, j := range jobs {
		k := m.jobs[j.ID]
		if k == nil || m.now().Sub(k.since) > MaxAge || m.now().Before(k.since) {
			cost := time.Duration(0)
			if k != nil {
				cost = k.cost
			}
			k = &memory{results: map[string]Result{}, since: m.now(), cost: cost}
			m.jobs[j.ID] = k
		}
		k.used = true
		// If there are too many, users have their turns with what is known, too.
		if len(jobs) <= most && k.knows(slots) {
			rows[i] = m.row(j, slots, false)
			continue
		}
		t.add(i, k.cost, j.Users)
	}
	begin := m.spent()
	t.take(func(i int) time.Duration {
		before := m.spent()
		switch {
		case rows[i] != nil:
		case most == 0:
			if left == nil {
				left = slices.Repeat([]Result{{Why: whyMany}}, len(slots))
			}
			rows[i] = left
			m.jobs[jobs[i].ID].results = map[string]Result{}
		default:
			most--
			rows[i] = m.row(jobs[i], slots, before.Sub(begin) < allTime)
		}
		return m.spent().Sub(before)
	})
	m.forget(slots)
	return rows
}

// knows reports whether nothing of a job needs to be evaluated.
func (k *memory) knows(slots []Slot) bool {
	for _, s := range slots {
		if _, known := k.results[s.ID]; !known {
			return false
		}
	}
	return true
}

// row evaluates one job, as far as its time goes.
func (m *Matcher) row(j Job, slots []Slot, evaluate bool) []Result {
	k := m.jobs[j.ID]
	row := make([]Result, len(slots))
	begin := m.spent()
	for i, s := range slots {
		r, known := k.results[s.ID]
		if !known {
			if evaluate && m.spent().Sub(begin) < jobTime {
				r = m.evaluate(j.Ad, s)
				k.results[s.ID] = r
			} else {
				r = Result{Why: whyPend}
			}
		}
		row[i] = r
	}
	k.cost += m.spent().Sub(begin)
	return row
}

// forget drops what the last update did not use.
func (m *Matcher) forget(slots []Slot) {
	there := map[string]bool{}
	for _, s := range slots {
		there[s.ID] = true
	}
	for id, k := range m.jobs {
		if !k.used {
			delete(m.jobs, id)
			continue
		}
		k.used = false
		for slot := range k.results {
			if !there[slot] {
				delete(k.results, slot)
			}
		}
	}
}

// evaluate matches a job and a slot.
func (m *Matcher) evaluate(job *classads.Ad, s Slot) Result {
	env := classads.Env{Now: m.now, Limits: bounds}
	switch {
	case !classads.Accepts(job, s.Ad, env):
		return Result{Why: whyMine}
	case !classads.Accepts(s.Ad, job, env):
		return Result{Why: whyTheirs}
	case !dedicated(job, s.Ad):
		return Result{Why: whyNobody}
	}
	if s.Refuses != nil {
		if why := s.Refuses(job, s.Ad); why != "" {
			return Result{Why: why}
		}
	}
	env.My, env.Target = job, s.Ad
	r := Result{Matches: true, Request: resources.Amount{
		CPUs:   amount(job, "RequestCpus", 1, env),
		Memory: amount(job, "RequestMemory", 1, env),
		Disk:   amount(job, "RequestDisk", 1, env),
		GPUs:   amount(job, "RequestGPUs", 0, env),
	}}
	if s.Rank != nil {
		v, _ := s.Rank.Eval(classads.Env{My: s.Ad, Target: job, Now: m.now, Limits: bounds}).Number()
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			r.Rank = v
		}
	}
	return r
}

// dedicated reports whether a job that only a dedicated scheduler serves could get the
// slot. The schedd adds this to its Requirements, and names the scheduler in the job
// (HTCondor src/condor_schedd.V6/dedicated_scheduler.cpp:makeGenericAdFromJobAd).
func dedicated(job, slot *classads.Ad) bool {
	const parallel = 11
	if job.IntOr("JobUniverse", 0) != parallel {
		return true
	}
	to := slot.StringOr("DedicatedScheduler", "")
	return to != "" && strings.EqualFold(to, job.StringOr("Scheduler", to))
}

// largest bounds what a job may ask for: sums of it must not overflow.
const largest = 1 << 50

// amount evaluates a request. As in the startd, a request that has no value takes
// the least (HTCondor src/condor_startd.V6/Resource.cpp:
// initialize_dslot / SlotType::bind of the consumption of a slot).
func amount(job *classads.Ad, name string, least int64, env classads.Env) int64 {
	v, ok := job.Eval(name, env).Number()
	if !ok || math.IsNaN(v) {
		return least
	}
	return min(max(int64(math.Ceil(min(v, largest))), least), largest)
}
