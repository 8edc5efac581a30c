package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
	"podstarter/provisioner/condortools"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/flock"
)

// Limits of what the collector may say of schedds.
const (
	maxSchedds    = 1000
	maxAds        = 10_000
	maxSubmitters = 200_000
)

// book reads what the collector knows of schedds and their submitters. If some ads
// cannot be read, it returns the others, with an error; if nothing is known, nil: what
// a schedd wants that flocks must not be taken for what one of this pool has.
func (p *Pool) book(ctx context.Context) (*flock.Book, error) {
	var ads []flock.Ad
	var submitters []flock.Submitter
	var errAds, errSubmitters error
	var wg sync.WaitGroup
	wg.Go(func() {
		errAds = p.ads(ctx, []string{"-schedd", "-attributes", strings.Join(flock.ScheddAttributes, ",")}, func(ad *classads.Ad) error {
			if len(ads) == maxAds {
				return fmt.Errorf("the collector has more than %d ads of schedds; name those that count", maxAds)
			}
			if a, ok := flock.ReadSchedd(ad); ok {
				ads = append(ads, a)
			}
			return nil
		})
	})
	wg.Go(func() {
		errSubmitters = p.ads(ctx, []string{"-submitters", "-attributes", strings.Join(flock.SubmitterAttributes, ",")}, func(ad *classads.Ad) error {
			if len(submitters) == maxSubmitters {
				return fmt.Errorf("the collector has more than %d ads of submitters", maxSubmitters)
			}
			if s, ok := flock.ReadSubmitter(ad); ok {
				submitters = append(submitters, s)
			}
			return nil
		})
	})
	wg.Wait()
	err := errors.Join(errAds, errSubmitters)
	for _, e := range []error{errAds, errSubmitters} {
		if e != nil && !errors.Is(e, errBadAd) {
			return nil, err
		}
	}
	return flock.NewBook(ads, submitters), err
}

// served returns the schedds whose jobs count and are served by the negotiator: those
// of this pool, and those of others.
func (p *Pool) served(ctx context.Context) (own, away []flock.Schedd, err error) {
	book, err := p.book(ctx)
	var wrong *multierror.Error
	if err != nil {
		wrong = multierror.Append(wrong, fmt.Errorf("%w: %w", demand.ErrPartial, err))
	}
	if book == nil {
		return nil, nil, wrong.ErrorOrNil()
	}
	if len(p.Schedds) > 0 {
		for _, named := range p.Schedds {
			for _, s := range book.Named(named.Name, named.Pool) {
				switch {
				case !s.Served:
				case s.Flocks():
					away = append(away, s)
				default:
					own = append(own, s)
				}
			}
		}
		return own, away, wrong.ErrorOrNil()
	}
	own, away = book.All()
	if err := p.known.missing(book.Own(), time.Now()); err != nil {
		wrong = multierror.Append(wrong, err)
	}
	if len(own) > maxSchedds {
		own = own[:maxSchedds]
		wrong = multierror.Append(wrong, fmt.Errorf("%w: there are more than %d schedds; name those that count", demand.ErrPartial, maxSchedds))
	}
	if len(away) > p.Flocking {
		// The same in each round, and not those with the names that somebody chose.
		slices.SortFunc(away, func(a, b flock.Schedd) int { return cmp.Compare(lot(a), lot(b)) })
		if p.Flocking > 0 {
			wrong = multierror.Append(wrong, fmt.Errorf("%d schedds of other pools flock here, and %d of them are asked (flocking.schedds); name those that count in schedds", len(away), p.Flocking))
		}
		away = away[:p.Flocking]
	}
	return own, away, wrong.ErrorOrNil()
}

// seed is another one in each process.
var seed = maphash.MakeSeed()

// lot is drawn by a schedd.
func lot(s flock.Schedd) uint64 { return maphash.String(seed, s.Name+"\n"+s.Address) }

// target says how a schedd is reached.
func (p *Pool) target(s flock.Schedd) demand.Target {
	t := demand.Target{Pool: p.Collector, Name: s.Name, Address: s.Address}
	for _, named := range p.Schedds {
		if named == s.Source && named.Pool != "" {
			t.Pool = named.Pool
		}
	}
	return t
}

// Job asks for one job. If its schedd is not named, each is asked, and there may be
// one in several.
func (p *Pool) Job(ctx context.Context, id demand.JobID, others []string) ([]*demand.Job, error) {
	query := p.Query.With(others)
	ctx, cancel := context.WithTimeout(ctx, home.all)
	defer cancel()
	schedds, err := p.candidates(ctx, id.Schedd)
	var wrong *multierror.Error
	if err != nil {
		wrong = multierror.Append(wrong, err)
	}
	var found []*demand.Job
	for _, s := range schedds {
		one := id
		one.Schedd = s.Name
		limit := home
		if s.Flocks() {
			limit = guests
		}
		var bad error
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, limit.each)
			defer cancel()
			return condortools.Run(ctx, func(r io.Reader) error {
				var j *demand.Job
				if j, bad = demand.ReadJob(r, one, s.Source); j != nil {
					j.Flocks, j.Refused = s.Says(j.User)
					if name, known := s.Charged(j.User); known {
						j.User = name
					}
					found = append(found, j)
				}
				return nil
			}, "condor_q", query.Job(p.target(s), one)...)
		}()
		for _, e := range []error{err, bad} {
			if e != nil {
				wrong = multierror.Append(wrong, fmt.Errorf("the schedd %s: %w", s, e))
			}
		}
	}
	return found, wrong.ErrorOrNil()
}

// candidates are the schedds that may have a job: all of a name, or all that are
// asked in each round.
func (p *Pool) candidates(ctx context.Context, name string) ([]flock.Schedd, error) {
	if name == "" {
		own, away, err := p.served(ctx)
		return append(own, away...), err
	}
	book, err := p.book(ctx)
	if book == nil {
		return nil, err
	}
	var found []flock.Schedd
	for _, named := range p.Schedds {
		if named.Pool != "" && strings.EqualFold(named.Name, name) {
			found = append(found, book.Named(named.Name, named.Pool)...)
		}
	}
	if found == nil {
		found = book.Named(name, "")
	}
	return found, err
}
