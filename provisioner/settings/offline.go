package settings

import (
	"fmt"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/provisioner/decision"
)

// Offline is what a site says of offline ads.
type Offline struct {
	// Spare is for how many units of a shape that is not there ads are published.
	Spare int
	// Lifetime is how long the collector keeps ads that nobody renews: those that
	// -ads prints.
	Lifetime time.Duration
	// WakeWithin is how old a match may be for which -wake makes a unit.
	WakeWithin time.Duration
}

// fileOffline is its form in the file.
type fileOffline struct {
	Spare      int    `json:"spare"`
	Lifetime   string `json:"lifetime"`
	WakeWithin string `json:"wakeWithin"`
}

// mostSpare bounds what the collector gets.
const mostSpare = 500

// offline reads mode and offline. The negotiator sees all jobs of the pool and
// chooses among them by itself, so what says which jobs count is refused.
func (s *Settings) offline(f file, duration func(key, text string, normal, least, most time.Duration) time.Duration) error {
	var wrong *multierror.Error
	s.Offline = Offline{
		Spare:      f.Offline.Spare,
		Lifetime:   duration("offline.lifetime", f.Offline.Lifetime, 24*time.Hour, time.Minute, 365*24*time.Hour),
		WakeWithin: duration("offline.wakeWithin", f.Offline.WakeWithin, 15*time.Minute, time.Minute, 24*time.Hour),
	}
	demand := f.Mode == "" || f.Mode == "demand"
	if n := f.Offline.Spare; demand && n != 0 {
		wrong = multierror.Append(wrong, fmt.Errorf("offline.spare is %d, and has no effect in the mode demand; take it out, or write mode: offline-ads", n))
	}
	if s.Offline.Spare == 0 {
		s.Offline.Spare = 10
	}
	if n := s.Offline.Spare; n < 0 || n > mostSpare {
		wrong = multierror.Append(wrong, fmt.Errorf("offline.spare is %d; it must be from 1 to %d", n, mostSpare))
	}
	switch {
	case demand:
		return wrong.ErrorOrNil()
	case f.Mode == "offline-ads":
		s.OfflineAds = true
	default:
		wrong = multierror.Append(wrong, fmt.Errorf("mode is %q; it must be demand or offline-ads", f.Mode))
		return wrong.ErrorOrNil()
	}
	p := f.Policy
	for key, says := range map[string]bool{
		"filter; say it in START of each template's slot": f.Filter != "", "schedds": len(f.Schedds) > 0, "flocking": f.Flocking != flocking{},
		"runtime": f.Runtime != "",
		"limits.perUser; the negotiator gives each user a fair share": f.Limits.PerUser != 0,
		"policy, except settle": p.Patience != "" || p.Horizon != "" || p.Start != "" || s.Policy.Ramp != decision.Ramp{},
	} {
		if says {
			wrong = multierror.Append(wrong, fmt.Errorf("in the mode offline-ads the negotiator chooses the jobs, so that there is no %s", key))
		}
	}
	return wrong.ErrorOrNil()
}
