package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"podstarter/provisioner/advert"
	"podstarter/provisioner/pool"
	"podstarter/provisioner/round"
	"podstarter/provisioner/settings"
	"podstarter/provisioner/template"
)

// mostAds is how many units of a shape -ads prints at most.
const mostAds = 10_000

// ending is how long taking ads back may last at the end.
const ending = 20 * time.Second

// wakeTime is how long -wake may take: condor_rooster does nothing else meanwhile.
const wakeTime = 3 * time.Minute

// errNoGroups is why there is nothing to explain.
var errNoGroups = errors.New("explaining a group: in the mode offline-ads the negotiator chooses among all jobs; ask condor_q -better-analyze for a job's reasons, and -dry-run for the offline ads")

// offline returns how a round deals with offline ads, or nil if it has none.
func (s service) offline() *round.Offline {
	if !s.set.OfflineAds {
		return nil
	}
	return &round.Offline{
		Market: &pool.Market{Pool: s.pool, Templates: s.templates}, Spare: s.set.Offline.Spare,
		// Several rounds may fail before jobs lose the ads.
		Lifetime: 5*s.set.Interval + time.Minute,
	}
}

// printAds prints the offline ads of a number of units of each shape, for
// condor_advertise -multiple, where condor_rooster wakes them.
func printAds(out io.Writer, n int, set settings.Settings, templates []template.Template) error {
	if n > mostAds {
		return fmt.Errorf("printing the ads of %d pods of each shape: at most %d are printed", n, mostAds)
	}
	for _, t := range templates {
		for _, s := range t.Shapes {
			for i := range n {
				ads := advert.Ads(advert.Form{
					Unit: set.Name + "-" + t.Name + "-" + strconv.Itoa(i+1), Template: t, Shape: s,
					Lifetime: set.Offline.Lifetime, Wake: set.Offline.WakeWithin,
				})
				for _, ad := range ads {
					if _, err := fmt.Fprintf(out, "%s\n", ad.FormatOld()); err != nil {
						return fmt.Errorf("printing the ads: %w", err)
					}
				}
			}
		}
	}
	return nil
}

// wake makes the pod for the offline ad that condor_rooster writes. Whatever it says
// goes to condor_rooster's log.
func (s service) wake(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, done := context.WithTimeout(ctx, wakeTime)
	defer done()
	ad, err := advert.ReadOne(in, s.set.Name, s.templates)
	if err != nil {
		return err
	}
	r, err := s.provisioner(ctx, nil, false)
	if err != nil {
		return err
	}
	said, err := r.Wake(ctx, ad, s.set.Offline.WakeWithin)
	if said != "" {
		_, wrong := fmt.Fprintln(out, said)
		err = errors.Join(err, wrong)
	}
	return err
}

// noTokens refuses templates whose pods have tokens of their own, for a batch system.
func noTokens(templates []template.Template) error {
	for _, t := range templates {
		if t.Token != nil {
			return fmt.Errorf("the template %s has a token, which comes in a Secret of Kubernetes; take it out where the platform is a batch system", t.Name)
		}
	}
	return nil
}

// end takes the ads back, although ctx is over.
func end(ctx context.Context, r *round.Round) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
	defer cancel()
	return r.End(ctx)
}
