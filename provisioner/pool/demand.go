package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/provisioner/condortools"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/flock"
)

// allowance is what the schedds of this pool, or those of others, may take.
type allowance struct {
	all, each time.Duration
	// atOnce is how many schedds are asked at the same time, and groups how many groups
	// all of them may have.
	atOnce, groups int
	one            demand.Bounds
	// asks is how often a schedd is asked at most for one round.
	asks int
	// rest is how long one is left alone that did not answer, each further time as much
	// longer.
	rest time.Duration
	// lacks is in the error if jobs are not known; nil for those of other pools.
	lacks error
}

// home is for the pool's own schedds. Without a limit for all of them, a hundred that
// do not answer would keep the others' jobs waiting for a quarter of an hour.
var home = allowance{
	all: 2 * condortools.Timeout, each: condortools.Timeout, atOnce: 8, groups: 100_000,
	one: demand.Bounds{Groups: demand.MaxGroups, Bytes: demand.MaxBytes}, asks: 3, lacks: demand.ErrPartial,
}

// guests is for those of other pools: they are asked beside the others, and what they
// do costs only their own jobs.
var guests = allowance{
	all: 30 * time.Second, each: 15 * time.Second, atOnce: 4, groups: 20_000,
	one: demand.Bounds{Groups: 2000, Bytes: 4 << 20}, asks: 1, rest: time.Minute,
}

// mostBytes is what all schedds of other pools may say together, unless there are
// hundreds.
const mostBytes = 32 << 20

// among divides what schedds of other pools may say: none of them takes the part of
// another one.
func (a allowance) among(schedds int) allowance {
	n := max(schedds, 1)
	a.one.Groups = max(min(a.one.Groups, a.groups/n), 50)
	a.one.Bytes = max(min(a.one.Bytes, mostBytes/n), maxText)
	a.groups = n * a.one.Groups
	return a
}

// Demand returns the groups of idle jobs of all schedds, which differ also in other
// attributes. If some schedds do not answer, it returns the groups of the others,
// with an error of demand.ErrPartial. Those of other pools are none of these: their
// pods may be withdrawn.
func (p *Pool) Demand(ctx context.Context, others []string) ([]demand.Group, error) {
	query := p.Query.With(others)
	own, away, err := p.served(ctx)
	var wrong *multierror.Error
	if err != nil {
		wrong = multierror.Append(wrong, err)
	}
	var answers, more []demand.Answer
	var ownErr, awayErr *multierror.Error
	var wg sync.WaitGroup
	limit := home
	if p.Within > 0 {
		limit.all = p.Within
	}
	wg.Go(func() { answers, ownErr = p.ask(ctx, query, own, limit) })
	wg.Go(func() { more, awayErr = p.ask(ctx, query, away, guests.among(len(away))) })
	wg.Wait()
	if ownErr != nil {
		wrong = multierror.Append(wrong, ownErr)
	}
	if awayErr != nil {
		for _, err := range awayErr.Errors {
			// No more than its words: nothing of this pool is unknown.
			wrong = multierror.Append(wrong, errors.New(err.Error()))
		}
	}
	if wrong != nil {
		sort.Sort(wrong) // the same errors are the same text in each round
	}
	return demand.Merge(append(answers, more...)), wrong.ErrorOrNil()
}

// ask asks schedds, as far as their time goes.
func (p *Pool) ask(ctx context.Context, query demand.Query, schedds []flock.Schedd, limit allowance) (answers []demand.Answer, wrong *multierror.Error) {
	// Those that do not answer may use up the time; they must not be the same ones
	// before the others each time.
	schedds = slices.Clone(schedds)
	rand.Shuffle(len(schedds), func(i, j int) { schedds[i], schedds[j] = schedds[j], schedds[i] })
	ctx, cancel := context.WithTimeout(ctx, limit.all)
	defer cancel()
	total := 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	turns := make(chan struct{}, limit.atOnce)
	for _, s := range schedds {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			if limit.rest > 0 && p.silent.rests(s, time.Now()) {
				return
			}
			began := time.Now()
			got, bad, err := p.jobs(ctx, query, s, limit)
			if limit.rest > 0 && ctx.Err() == nil {
				p.silent.note(s, time.Since(began) >= limit.each, limit.rest, time.Now())
			}
			mu.Lock()
			defer mu.Unlock()
			if total += len(got); total > limit.groups {
				err = fmt.Errorf("there are more than %d groups", limit.groups)
			} else {
				answers = append(answers, demand.Answer{Source: s.Source, Rows: got})
			}
			if err != nil && limit.lacks != nil {
				err = fmt.Errorf("%w: %w", limit.lacks, err)
			}
			for _, e := range []error{err, bad} {
				if e != nil {
					wrong = multierror.Append(wrong, fmt.Errorf("the jobs of the schedd %s: %w", s, e))
				}
			}
		})
	}
	wg.Wait()
	return answers, wrong
}

// jobs asks a schedd for its groups. If there are more than are read, it asks again
// without the users who have the most of them, of whom only the first groups count:
// they must not keep the others' jobs from being seen. bad says what cannot be read.
func (p *Pool) jobs(ctx context.Context, query demand.Query, schedd flock.Schedd, limit allowance) (rows []demand.Row, bad, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit.each)
	defer cancel()
	query = query.AtMost(limit.one.Groups)
	var without []string
	for ask := range limit.asks {
		var got []demand.Row
		var unread error
		err = condortools.Run(ctx, func(r io.Reader) error {
			// There is no use in waiting for what is not read.
			if got, unread = limit.one.Read(r); errors.Is(unread, demand.ErrTooMuch) {
				return unread
			}
			return nil
		}, "condor_q", query.Without(without).Arguments(p.target(schedd))...)
		// Of those who are asked for no more, the groups that were read before stay.
		rows = slices.DeleteFunc(rows, func(r demand.Row) bool { return !slices.Contains(without, r.Owner) })
		rows = append(rows, got...)
		var much *demand.TooMuchError
		if errors.Is(unread, demand.ErrTooMuch) {
			err = nil // it says the same
		}
		if !errors.As(unread, &much) || len(much.Owners) == 0 || ask == limit.asks-1 {
			bad = errors.Join(bad, unread)
			break
		}
		without = append(without, much.Owners...)
		bad = fmt.Errorf("there are more groups of jobs of %s than are read (%d)", strings.Join(without, ", "), len(rows))
	}
	return schedd.Bound(rows), bad, err
}
