package round

import (
	"cmp"
	"slices"
	"time"

	"podstarter/provisioner/platform"
)

// recall notes what became of units that ended before this provisioner began, if they
// tell whether a job has begun in them, and are still listed.
func (k *takers) recall(units []platform.Unit, idle map[string]bool, now time.Time) {
	var past []platform.Unit
	for _, u := range units {
		if u.Phase == platform.Ended && u.Use != platform.UseUnknown && u.Trouble == "" && !u.Leaving && !u.Former &&
			!u.Ended.IsZero() && !u.Ended.After(now) && k.rows[u.Template] != nil && idle[u.Group] {
			past = append(past, u)
		}
	}
	slices.SortFunc(past, func(a, b platform.Unit) int {
		return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Name, b.Name))
	})
	for _, u := range past {
		o := &offer{pair: pair{u.Group, u.Template}, user: u.User, now: u.Use == platform.Used}
		k.trials(o.pair, now)
		if k.take(o, u.Ended); !o.taken {
			k.leave(o, u.Ended)
		}
	}
}
