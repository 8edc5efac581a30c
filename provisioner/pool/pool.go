// Package pool asks an HTCondor pool, by its own tools, what the provisioner must
// know of it.
package pool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/provisioner/condortools"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/supply"
)

// Limits of what the collector may say.
const (
	maxUsers = 100_000
	maxBytes = 64 << 20
	maxText  = 64 << 10
	maxName  = 1024 // of a submitter: an accounting group and a domain
)

// Pool is a pool.
type Pool struct {
	// Collector is the pool's, or empty for that of the configuration.
	Collector string
	// Schedds are those whose jobs count; none stands for all that the collector knows,
	// with those that flock here. A schedd with a pool is one that its own collector
	// knows.
	Schedds []demand.Source
	// Flocking is how many schedds of other pools are asked at most, if none are named.
	Flocking int
	Query    demand.Query
	// Prefix begins the names of the provisioner's pods.
	Prefix string
	// Within is how long the schedds may take together; 0 is two minutes.
	Within time.Duration

	// silent has the schedds of other pools that did not answer.
	silent silences
	known  known
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
		err = fmt.Errorf("%w: %w", errBadAd, bad)
	}
	return err
}

// errBadAd is returned if some ads cannot be read, and all others were.
var errBadAd = errors.New("reading what condor_status prints")
