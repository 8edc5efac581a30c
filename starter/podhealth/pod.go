package podhealth

import (
	"errors"
	"fmt"
	"time"
)

// Pod is what the starters of a pod know of it together. Its methods may be called
// from several processes and goroutines at once.
type Pod struct {
	// StateDir is the directory of the file with the pod's health. Nobody but root
	// and this user may write to it.
	StateDir string
	// PublishDir is the directory of the file that Monitor reads: HTCondor's LOCK.
	PublishDir string
	// LongestRest is how long a slot takes no jobs after one failed, at most; a sick
	// pod takes none for up to six times as long. 0: slots never rest.
	LongestRest time.Duration
	// WarmImages lists the images that ran here last, the latest first, for the
	// pool; nil if none are advertised.
	WarmImages func() ([]string, error)
}

// Condition is the pod's health as an operator sees it.
type Condition struct {
	// Until is when the next job is tried in a sick pod; zero if the pod is well. Reason says
	// why it is sick.
	Until  time.Time
	Reason string
	// Rests are the slots that take no jobs, by SlotId.
	Rests map[string]Rest
}

// condition is what of the health holds now.
func (h Health) condition(now time.Time) Condition {
	var c Condition
	c.Until, c.Reason = h.offline(now)
	for slot, r := range h.Rests {
		if now.Before(r.Until) {
			if c.Rests == nil {
				c.Rests = make(map[string]Rest)
			}
			c.Rests[slot] = r
		}
	}
	return c
}

// Health reads what is known; a file that cannot be read counts as good health.
func (p Pod) Health() (Health, error) { return store{p.StateDir}.read() }

// note changes the health and lets the monitor know at once.
func (p Pod) note(change func(h Health, now time.Time) Health) error {
	err := store{p.StateDir}.update(func(h Health) Health { return change(h, time.Now()) })
	return errors.Join(err, p.Publish())
}

// Publish writes what Monitor reads, unless it stands there already.
func (p Pod) Publish() error {
	var s published
	var err, errImages error
	s.Health, err = p.Health()
	if p.WarmImages != nil {
		s.Images, errImages = p.WarmImages()
	}
	if err = errors.Join(err, errImages, s.write(p.PublishDir)); err != nil {
		return fmt.Errorf("publish the pod's state: %w", err)
	}
	return nil
}

// Recheck checks the pod once if it is sick, and lets it take jobs again if check
// finds nothing although an earlier check did. found is what check found; err says
// that the health could not be read or noted.
func (p Pod) Recheck(check func() error) (found, err error) {
	h, err := p.Health()
	if err != nil {
		return nil, err
	}
	if until, _ := h.offline(time.Now()); until.IsZero() {
		return nil, nil
	}
	found = check()
	return found, p.note(func(now Health, at time.Time) Health { return now.checked(*h.Sick, found, at) })
}
