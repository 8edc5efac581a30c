package pool

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/provisioner/demand"
	"podstarter/provisioner/flock"
)

// updates is how long a schedd that the collector knew may be unknown there: after the
// collector's restart each comes with its next update (SCHEDD_INTERVAL, 5 minutes).
// Without this, pods on their way would be withdrawn meanwhile.
const updates = 6 * time.Minute

// known are the schedds of this pool that the collector knew, and when it did so last.
type known struct {
	mu  sync.Mutex
	all map[string]time.Time
}

// missing notes which schedds there are, and returns an error of demand.ErrPartial for
// those that are missing since a short while.
func (k *known) missing(there []flock.Schedd, now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = map[string]time.Time{}
	}
	for _, s := range there {
		k.all[strings.ToLower(s.Name)] = now
	}
	var names []string
	for name, at := range k.all {
		if since := now.Sub(at); since > updates || since < 0 {
			delete(k.all, name)
		} else if at != now {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	var wrong *multierror.Error
	for _, name := range names[:min(len(names), 10)] {
		wrong = multierror.Append(wrong, fmt.Errorf("%w: the collector does not know the schedd %s, which it did a few minutes ago; the one or the other was started anew, or the schedd has ended", demand.ErrPartial, name))
	}
	return wrong.ErrorOrNil()
}
