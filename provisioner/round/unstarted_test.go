package round

import (
	"strings"
	"testing"
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/platform"
)

// A unit that its node does not begin, without a word why, is waited for as long as
// pulling large images takes. Then it counts as one that came to nothing, and others
// are tried one after the other.
func TestUnitThatDoesNotBegin(t *testing.T) {
	s := newSite(t)
	s.prove()
	s.pool.groups = []demand.Group{jobs(t, 3, plainJob)}
	made := s.run().Made
	if len(made) != 3 {
		t.Fatalf("%v are made", made)
	}
	for _, name := range made {
		s.platform.Place(name)
	}
	var failed []Failure
	for range platform.DefaultBeginWithin / time.Minute {
		s.now = s.now.Add(time.Minute)
		rep := s.run()
		if len(rep.Made) != 0 || len(rep.Withdrawn) != 0 || len(rep.Failed) != 0 {
			t.Fatalf("%v are made, %v withdrawn and %v failed within %s", rep.Made, rep.Withdrawn, rep.Failed, platform.DefaultBeginWithin)
		}
	}
	var gone []string
	made = nil
	for range 10 {
		s.now = s.now.Add(time.Minute)
		rep := s.run()
		failed, made, gone = append(failed, rep.Failed...), append(made, rep.Made...), append(gone, rep.Withdrawn...)
		if n := rep.Backoff[0].Failures; n != 1 {
			t.Fatalf("the template has failed %d times", n)
		}
	}
	if len(failed) != 3 || failed[0].Reason != backoff.Unstarted || !strings.Contains(failed[0].Detail, "a node has had it since") {
		t.Errorf("the failures are %+v", failed)
	}
	if len(made) != 1 {
		t.Fatalf("%v are made in the next ten minutes, want one that is tried", made)
	}
	// It is on a better node. The others are not needed then.
	s.report(made[0], s.round.shapes[0].Pod)
	s.pool.groups = []demand.Group{jobs(t, 1, plainJob)}
	for range 5 {
		s.now = s.now.Add(time.Minute)
		gone = append(gone, s.run().Withdrawn...)
	}
	if len(gone) != 3 {
		t.Errorf("%v are withdrawn, want the three that do not begin", gone)
	}
}

// Without a node, or with another trouble, a unit is not one that does not begin.
func TestUnitThatWaitsForANode(t *testing.T) {
	s := newSite(t)
	s.prove()
	s.pool.groups = []demand.Group{jobs(t, 2, plainJob)}
	made := s.run().Made
	s.platform.Place(made[1])
	s.platform.Begin(made[1])
	for range 120 {
		s.now = s.now.Add(time.Minute)
		for _, f := range s.run().Failed {
			if f.Reason == backoff.Unstarted {
				t.Fatalf("%+v", f)
			}
		}
	}
}

// A unit whose image cannot be pulled counts as one that came to nothing once that has
// lasted, and another is tried beside it long before it should have begun.
func TestUnitWhoseImageCannotBePulled(t *testing.T) {
	s := newSite(t)
	s.prove()
	s.pool.groups = []demand.Group{jobs(t, 3, plainJob)}
	made := s.run().Made
	for _, name := range made {
		s.platform.Spoil(name)
	}
	for range stuckAfter / time.Minute {
		if rep := s.run(); len(rep.Failed) != 0 || len(rep.Made) != 0 {
			t.Fatalf("%v failed and %v are made at once; it may pass", rep.Failed, rep.Made)
		}
		s.now = s.now.Add(time.Minute)
	}
	rep := s.run()
	if len(rep.Failed) != 3 || rep.Failed[0].Reason != backoff.ImageFailed || rep.Backoff[0].Failures != 1 {
		t.Fatalf("the failures are %+v, and the template's %+v", rep.Failed, rep.Backoff[0])
	}
	var tried []string
	for range backoff.Horizons[backoff.ImageFailed].First / time.Minute {
		s.now = s.now.Add(time.Minute)
		tried = append(tried, s.run().Made...)
	}
	if len(tried) != 1 {
		t.Errorf("%v are tried after the first wait, want one", tried)
	}
}

// A pull that fails once and works then is none.
func TestPullThatFailsOnce(t *testing.T) {
	s := newSite(t)
	s.prove()
	s.pool.groups = []demand.Group{jobs(t, 1, plainJob)}
	name := s.run().Made[0]
	s.platform.Spoil(name)
	s.run()
	s.platform.Begin(name)
	for range 5 {
		s.now = s.now.Add(time.Minute)
		if rep := s.run(); len(rep.Failed) != 0 {
			t.Fatalf("%+v", rep.Failed)
		}
	}
}
