package pool

import (
	"maps"
	"sync"
	"time"

	"podstarter/provisioner/flock"
)

// Bounds of silences.
const (
	mostRests = 10 // times the rest
	maxSilent = 10_000
)

// silences are the schedds of other pools that did not answer in their time. Each of
// them would make each round as much longer.
type silences struct {
	mu  sync.Mutex
	all map[string]silence
}

// silence is how often in a row a schedd did not answer, and until when it is left
// alone.
type silence struct {
	times int
	until time.Time
}

func id(s flock.Schedd) string { return s.Name + "\n" + s.Pool + "\n" + s.Address }

// rests reports whether a schedd is left alone.
func (k *silences) rests(s flock.Schedd, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return now.Before(k.all[id(s)].until)
}

// note notes whether a schedd was silent.
func (k *silences) note(s flock.Schedd, silent bool, rest time.Duration, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !silent {
		delete(k.all, id(s))
		return
	}
	if k.all == nil {
		k.all = map[string]silence{}
	}
	// Those that are gone are forgotten.
	maps.DeleteFunc(k.all, func(_ string, v silence) bool { return now.Sub(v.until) > mostRests*rest })
	if len(k.all) < maxSilent {
		v := k.all[id(s)]
		v.times = min(v.times+1, mostRests)
		v.until = now.Add(time.Duration(v.times) * rest)
		k.all[id(s)] = v
	}
}
