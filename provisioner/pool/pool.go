// Package pool asks an HTCondor pool, by its own tools, what the provisioner must
// know of it.
package pool

import (
	"bufio"
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

	"podstarter/classads"
	"podstarter/provisioner/condortools"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/supply"
)

// Limits of what the collector may say.
const (
	maxSchedds = 1000
	maxGroups  = 100_000
	maxUsers   = 100_000
	maxBytes   = 64 << 20
	maxText    = 64 << 10
	maxName    = 1024 // of a submitter: an accounting group and a domain
	// atOnce is how many schedds are asked at the same time.
	atOnce = 8
)

// Pool is a pool.
type Pool struct {
	// Collector is the pool's, or empty for that of the configuration.
	Collector string
	// Schedds are those whose jobs count; none stands for all of the pool.
	Schedds []string
	Query   demand.Query
	// Prefix begins the names of the provisioner's pods.
	Prefix string
	// Within is how long the schedds may take together; 0 is two minutes.
	Within time.Duration
}

// patience is how long all schedds together may take: without a limit, a hundred
// that do not answer would keep the others' jobs waiting for a quarter of an hour.
func (p *Pool) patience() time.Duration {
	if p.Within > 0 {
		return p.Within
	}
	return 2 * condortools.Timeout
}

// Demand returns the groups of idle jobs of all schedds, which differ also in other
// attributes. If some schedds do not answer, it returns the groups of the others,
// with an error of demand.ErrPartial.
func (p *Pool) Demand(ctx context.Context, others []string) ([]demand.Group, error) {
	query := p.Query.With(others)
	var wrong *multierror.Error
	schedds := slices.Clone(p.Schedds)
	if len(schedds) == 0 {
		var err error
		if schedds, err = p.schedds(ctx); err != nil {
			wrong = multierror.Append(wrong, fmt.Errorf("%w: %w", demand.ErrPartial, err))
		}
	}
	// Those that do not answer may use up the time; they must not be the same ones
	// before the others each time.
	rand.Shuffle(len(schedds), func(i, j int) { schedds[i], schedds[j] = schedds[j], schedds[i] })
	ctx, cancel := context.WithTimeout(ctx, p.patience())
	defer cancel()
	total := 0
	rows := map[string][]demand.Row{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for _, name := range schedds {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			got, bad, err := p.jobs(ctx, query, name)
			mu.Lock()
			defer mu.Unlock()
			if total += len(got); total > maxGroups {
				wrong = multierror.Append(wrong, fmt.Errorf("the jobs of the schedd %s: %w: the pool has more than %d groups", name, demand.ErrPartial, maxGroups))
				return
			}
			rows[name] = got
			if err != nil {
				err = fmt.Errorf("%w: %w", demand.ErrPartial, err)
			}
			for _, e := range []error{err, bad} {
				if e != nil {
					wrong = multierror.Append(wrong, fmt.Errorf("the jobs of the schedd %s: %w", name, e))
				}
			}
		})
	}
	wg.Wait()
	if wrong != nil {
		sort.Sort(wrong) // the same errors are the same text in each round
	}
	return demand.Merge(rows), wrong.ErrorOrNil()
}

// Job asks for one job. If its schedd is not named, each is asked, and there may be
// one in several.
func (p *Pool) Job(ctx context.Context, id demand.JobID, others []string) ([]*demand.Job, error) {
	query := p.Query.With(others)
	ctx, cancel := context.WithTimeout(ctx, p.patience())
	defer cancel()
	schedds := []string{id.Schedd}
	var wrong *multierror.Error
	if id.Schedd == "" {
		if schedds = p.Schedds; len(schedds) == 0 {
			var err error
			schedds, err = p.schedds(ctx)
			wrong = multierror.Append(wrong, err)
		}
	}
	var found []*demand.Job
	for _, name := range schedds {
		one := id
		one.Schedd = name
		var bad error
		err := condortools.Run(ctx, func(r io.Reader) error {
			var j *demand.Job
			if j, bad = demand.ReadJob(r, one); j != nil {
				found = append(found, j)
			}
			return nil
		}, "condor_q", query.Job(p.Collector, one)...)
		for _, e := range []error{err, bad} {
			if e != nil {
				wrong = multierror.Append(wrong, fmt.Errorf("the schedd %s: %w", name, e))
			}
		}
	}
	return found, wrong.ErrorOrNil()
}

// asks is how often a schedd is asked at most for one round.
const asks = 3

// jobs asks a schedd for its groups. If there are more than are read, it asks again
// without the users who have the most of them, of whom only the first groups count:
// they must not keep the others' jobs from being seen. bad says what cannot be read.
func (p *Pool) jobs(ctx context.Context, query demand.Query, schedd string) (rows []demand.Row, bad, err error) {
	var without []string
	for ask := range asks {
		var got []demand.Row
		var unread error
		err = condortools.Run(ctx, func(r io.Reader) error {
			// There is no use in waiting for what is not read.
			if got, unread = demand.Read(r); errors.Is(unread, demand.ErrTooMuch) {
				return unread
			}
			return nil
		}, "condor_q", query.Without(without).Arguments(p.Collector, schedd)...)
		// Of those who are asked for no more, the groups that were read before stay.
		rows = slices.DeleteFunc(rows, func(r demand.Row) bool { return !slices.Contains(without, r.Owner) })
		rows = append(rows, got...)
		var much *demand.TooMuchError
		if errors.Is(unread, demand.ErrTooMuch) {
			err = nil // it says the same
		}
		if !errors.As(unread, &much) || len(much.Owners) == 0 || ask == asks-1 {
			bad = errors.Join(bad, unread)
			break
		}
		without = append(without, much.Owners...)
		bad = fmt.Errorf("there are more groups of jobs of %s than are read (%d)", strings.Join(without, ", "), len(rows))
	}
	return rows, bad, err
}

// schedds returns the names of all schedds that the collector knows.
func (p *Pool) schedds(ctx context.Context) ([]string, error) {
	var names []string
	err := p.ads(ctx, []string{"-schedd", "-attributes", "Name"}, func(ad *classads.Ad) error {
		if len(names) == maxSchedds {
			return fmt.Errorf("there are more than %d schedds; name those that count", maxSchedds)
		}
		// A name becomes an argument of condor_q.
		if name := ad.StringOr("Name", ""); name != "" && !strings.HasPrefix(name, "-") {
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// Version returns the version of HTCondor on this machine, as slots advertise it
// (CondorVersion). The provisioner's image is that of the pilots.
func Version(ctx context.Context) (string, error) {
	var text []byte
	err := condortools.Run(ctx, func(r io.Reader) (err error) {
		text, err = io.ReadAll(io.LimitReader(r, maxText))
		return err
	}, "condor_version")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "$CondorVersion: ") && strings.HasSuffix(line, "$") {
			return line, nil
		}
	}
	return "", fmt.Errorf("reading what condor_version prints: no line is a $CondorVersion")
}

// Users returns what the accountant says of submitters. The negotiator sends it to
// the collector (NEGOTIATOR_ADVERTISE_ACCOUNTING, on by default).
func (p *Pool) Users(ctx context.Context) (map[string]decision.User, error) {
	users := map[string]decision.User{}
	err := p.ads(ctx, []string{"-any", "-constraint", `MyType == "Accounting"`, "-attributes", "Name,Priority,WeightedResourcesUsed"}, func(ad *classads.Ad) error {
		if len(users) == maxUsers {
			return fmt.Errorf("there are more than %d submitters", maxUsers)
		}
		name := ad.StringOr("Name", "")
		if len(name) > maxName {
			return nil // no group of jobs has such a submitter
		}
		users[name] = decision.User{Priority: ad.RealOr("Priority", 0), Usage: ad.RealOr("WeightedResourcesUsed", 0)}
		return nil
	})
	return users, err
}

// Slots returns what the collector knows of the provisioner's pods. Slots that
// cannot be read are in the error, and the others are returned with it: whoever
// may advertise could otherwise stop the provisioner by one ad. If nothing can be
// read, nothing is returned.
func (p *Pool) Slots(ctx context.Context) (map[string]*supply.Pod, error) {
	var pods map[string]*supply.Pod
	var bad error
	err := condortools.Run(ctx, func(r io.Reader) error {
		pods, bad = supply.Read(r)
		return nil
	}, "condor_status", supply.Arguments(p.Collector, p.Prefix)...)
	switch {
	case err != nil:
		return nil, err
	case bad != nil && (len(pods) == 0 || errors.Is(bad, supply.ErrTooMuch)):
		return nil, bad
	}
	return pods, bad
}

// Ads returns what slots advertise, by their names. One that cannot be read, or is
// longer than a slot's ad may be, is in the error.
func (p *Pool) Ads(ctx context.Context, wanted []string) (map[string]*classads.Ad, error) {
	var names []string
	for _, name := range wanted {
		// Whoever may advertise chooses the name, and it becomes part of an expression.
		if strings.Trim(name, letters) == "" {
			names = append(names, "Name == "+classads.Quote(name))
		}
	}
	found := map[string]*classads.Ad{}
	if len(names) == 0 {
		return found, nil
	}
	err := p.ads(ctx, []string{"-constraint", strings.Join(names, " || ")}, func(ad *classads.Ad) error {
		// The collector may have several ads with one name, from several addresses.
		name := ad.StringOr("Name", "")
		if slices.Contains(wanted, name) && found[name] == nil {
			found[name] = ad
		}
		return nil
	})
	return found, err
}

// letters are those of which names of slots are made.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.@:"

// ads runs condor_status and reads each ad that it prints. One that cannot be read
// costs only itself, and is the error at the end.
func (p *Pool) ads(ctx context.Context, args []string, each func(ad *classads.Ad) error) error {
	args = append(args, "-long")
	if p.Collector != "" {
		args = append([]string{"-pool", p.Collector}, args...)
	}
	var bad error
	err := condortools.Run(ctx, func(r io.Reader) error {
		for ad, err := range classads.NewReader(bufio.NewReader(io.LimitReader(r, maxBytes)), classads.FormatLong, classads.Parser{MaxText: maxText}).All() {
			if err != nil {
				bad = err
				continue
			}
			if err := each(ad); err != nil {
				return err
			}
		}
		return nil
	}, "condor_status", args...)
	if err == nil && bad != nil {
		err = fmt.Errorf("reading what condor_status prints: %w", bad)
	}
	return err
}
