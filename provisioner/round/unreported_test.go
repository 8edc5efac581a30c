package round

import (
	"errors"
	"testing"
	"time"

	"podstarter/provisioner/supply"
)

// A pod that reported while nothing could be asked, and that the collector has
// forgotten since, may have jobs.
func TestUnreportedAmongOfflineAds(t *testing.T) {
	s, m := offlineSite(t)
	s.config.Templates[0].EndUnreported = 30 * time.Minute
	s.restart(s.platform)
	s.run()
	made := s.minute(m, 2).Made
	if len(made) != 1 {
		t.Fatalf("%v are made", made)
	}
	s.platform.Begin(made[0])
	s.now = s.now.Add(time.Minute)
	s.run()
	m.err = errors.New("away")
	for range 60 {
		s.now = s.now.Add(time.Minute)
		if rep := s.run(); !rep.Unknown {
			t.Fatal("the round has known what is there")
		}
	}
	m.err, s.pool.slots = nil, map[string]*supply.Pod{}
	for range 60 {
		s.now = s.now.Add(time.Minute)
		if rep := s.run(); len(rep.Removed) != 0 {
			t.Fatalf("%v are ended, which may have jobs", rep.Removed)
		}
	}
}

// Nor is a pod known to be silent if some of what the collector has cannot be read.
func TestUnreportedAmongSlotsThatCannotBeRead(t *testing.T) {
	s := newSite(t)
	s.config.Templates[0].EndUnreported = 30 * time.Minute
	s.restart(s.platform)
	s.prove()
	s.pool.groups = append(s.pool.groups, jobs(t, 2, plainJob))
	made := s.run().Made
	if len(made) == 0 {
		t.Fatal("nothing is made")
	}
	s.platform.Begin(made[0])
	s.pool.slotsErr = errors.New("the ad of a slot cannot be read")
	for range 120 {
		s.now = s.now.Add(time.Minute)
		if rep := s.run(); len(rep.Removed) != 0 {
			t.Fatalf("%v are ended, which may have jobs", rep.Removed)
		}
	}
}

// A node whose clock is behind says that a pod began long ago, and rounds can be an
// hour apart. Both make no pod silent that was missed only once or twice: the
// collector may just have started anew.
func TestUnreportedForAWhile(t *testing.T) {
	for name, every := range map[string]time.Duration{"a clock that is behind": time.Minute, "rounds far apart": time.Hour} {
		s := newSite(t)
		s.config.Templates[0].EndUnreported = 30 * time.Minute
		s.restart(s.platform)
		s.prove()
		s.pool.groups = append(s.pool.groups, jobs(t, 2, plainJob))
		made := s.run().Made
		if len(made) == 0 {
			t.Fatal("nothing is made")
		}
		began := s.now
		s.now = s.now.Add(-2 * time.Hour)
		s.platform.Begin(made[0])
		s.now = began
		ended := 0
		for i := range 40 {
			s.now = s.now.Add(every)
			if len(s.run().Removed) == 0 {
				continue
			}
			if ended = i + 1; ended <= 2 || time.Duration(ended)*every <= 30*time.Minute {
				t.Errorf("%s: it is ended in round %d", name, ended)
			}
		}
		if ended == 0 {
			t.Errorf("%s: it is never ended", name)
		}
	}
}
