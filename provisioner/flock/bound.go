package flock

import (
	"fmt"
	"slices"
	"strings"

	"podstarter/provisioner/demand"
)

// parallel is the universe of jobs that the dedicated scheduler serves. They do not
// flock (HTCondor src/condor_schedd.V6/dedicated_scheduler.cpp).
const parallel = 11

// Bound returns the jobs of a schedd that count, by the names of their submitters in
// this pool's accountant. If the schedd flocks, these are at most as many of each
// submitter as it asks for: first those that name this pool in FlockTo, since others
// may not flock at all where FLOCK_BY_DEFAULT is false.
func (s Schedd) Bound(rows []demand.Row) []demand.Row {
	var kept []demand.Row
	of := map[string][]int{} // rows of each submitter, by index in kept
	for _, row := range rows {
		want, known := s.submitter(row.User)
		if known {
			row.User = want.Name
		}
		if s.Flocks() && (!known || row.Ad.IntOr("JobUniverse", 0) == parallel) {
			continue
		}
		if s.Flocks() {
			// The owner counts for limits, and is another one than this pool's of that name.
			owner, _, _ := strings.Cut(row.Owner, "@")
			_, domain, _ := strings.Cut(want.Name, "@")
			if row.Owner = owner + "@" + domain; len(row.Owner) > maxName {
				continue // as in package demand: pods would keep a part of it, which is another name
			}
			of[want.Name] = append(of[want.Name], len(kept))
		}
		kept = append(kept, row)
	}
	if !s.Flocks() {
		return kept
	}
	for name, mine := range of {
		left := s.wants[name].Idle
		for wish := preferred; wish <= others; wish++ {
			var same []*int
			for _, i := range mine {
				if s.wish(kept[i]) == wish {
					same = append(same, &kept[i].Jobs)
				}
			}
			left -= share(same, left)
		}
	}
	return slices.DeleteFunc(kept, func(r demand.Row) bool { return r.Jobs == 0 })
}

// How much jobs wish to flock here.
const (
	preferred = iota // they name this pool
	defaults         // they name the pools of FLOCK_TO
	others
)

// wish reads FlockTo as the schedd does (HTCondor src/condor_schedd.V6/schedd.cpp:
// JobCanFlock).
func (s Schedd) wish(row demand.Row) int {
	want, _ := s.submitter(row.User)
	best := others
	for pool := range strings.FieldsFuncSeq(row.FlockTo, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n' }) {
		switch {
		case strings.EqualFold(pool, want.Tag):
			return preferred
		case strings.EqualFold(pool, "default"):
			best = defaults
		}
	}
	return best
}

// share cuts numbers so that their sum is at most a limit, the large ones first: jobs
// that match nothing must not take the places of all others. It returns the sum.
func share(numbers []*int, limit int) int {
	slices.SortStableFunc(numbers, func(a, b *int) int { return *a - *b })
	left := max(limit, 0)
	for i, n := range numbers {
		// As much for each that is left; what does not divide is for the last ones.
		*n = min(*n, left/(len(numbers)-i))
		left -= *n
	}
	return max(limit, 0) - left
}

// submitter returns the ad of a submitter. The schedd names it in its
// ACCOUNTING_DOMAIN, which jobs do not have: they have the domain of their owner.
func (s Schedd) submitter(user string) (Submitter, bool) {
	if want, known := s.wants[user]; known {
		return want, true
	}
	local, domain, _ := strings.Cut(user, "@")
	name, known := s.locals[local]
	if !known || domain == s.domain {
		return Submitter{}, false
	}
	return s.wants[name], true
}

// Charged returns the name by which the accountant knows a user's jobs of the schedd.
func (s Schedd) Charged(user string) (name string, known bool) {
	want, known := s.submitter(user)
	return want.Name, known
}

// Says says what a schedd of another pool wants for a user, and, in refused, why no
// pod is made for the user's jobs there; each may be empty.
func (s Schedd) Says(user string) (wants, refused string) {
	want, known := s.submitter(user)
	switch {
	case !s.known:
		return "", ""
	case !s.Flocks() && !s.Served:
		return "", fmt.Sprintf("the collector has no submitter ad of the schedd %s, so the negotiator serves none of its jobs; a schedd of another pool sends one while it flocks here (FLOCK_TO), and one of this pool a few seconds after the job was submitted", s.Name)
	case !s.Flocks():
		return "", ""
	case !known || want.Idle == 0:
		return "", fmt.Sprintf("the schedd %s asks for no slots for %s here: it asks for a submitter once the pools before this one in its FLOCK_TO have none, and not if no job of the submitter may flock here (FLOCK_BY_DEFAULT, FlockTo of the job)", s.Source, user)
	}
	return fmt.Sprintf("it flocks here, and asks for slots for %d jobs of %s", want.Idle, want.Name), ""
}
