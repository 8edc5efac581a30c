package round

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/provisioner/demand"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/model"
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

// A kill of the provisioner does not keep a silent pod for ever: where the platform
// knows that no job has begun in it, it is ended although it ran before. One that has
// had a job stays, and so does one of which nothing is known.
func TestUnreportedOfBeforeARestart(t *testing.T) {
	for name, c := range map[string]struct {
		use   platform.Use
		ended bool
	}{
		"no job has begun":       {platform.Unused, true},
		"a job has begun":        {platform.Used, false},
		"nothing is known of it": {platform.UseUnknown, false},
	} {
		s, silent := silentSite(t)
		s.platform.Mark(silent, c.use)
		s.now = s.now.Add(25 * time.Minute)
		s.run()
		s.restart(s.platform)
		var ended time.Duration
		for m := time.Duration(0); m < 2*time.Hour && ended == 0; m += time.Minute {
			if rep := s.run(); len(rep.Removed) != 0 {
				ended = 25*time.Minute + m
			}
			s.now = s.now.Add(time.Minute)
		}
		// Not before the collector would have known it again if it were the one that had
		// begun anew.
		if (ended != 0) != c.ended || c.ended && (ended < 25*time.Minute+updates || ended > 35*time.Minute) {
			t.Errorf("%s: it is ended after %s", name, ended)
		}
	}
}

// A collector that was away while the provisioner began anew may not know a pod
// because of that.
func TestUnreportedWhileTheCollectorIsAway(t *testing.T) {
	s, silent := silentSite(t)
	s.platform.Mark(silent, platform.Unused)
	s.now = s.now.Add(2 * time.Hour)
	s.restart(s.platform)
	for range 30 {
		s.pool.slots, s.pool.slotsErr = map[string]*supply.Pod{}, nil
		for range 5 {
			s.now = s.now.Add(time.Minute)
			if rep := s.run(); len(rep.Removed) != 0 {
				t.Fatalf("%v are ended", rep.Removed)
			}
		}
		s.pool.slots, s.pool.slotsErr = nil, errors.New("away")
		s.now = s.now.Add(time.Minute)
		s.run()
	}
}

// A job that began since the unit was looked at keeps it, and is no failure.
func TestUnreportedThatHasAJobMeanwhile(t *testing.T) {
	s, silent := silentSite(t)
	s.restart(begun{s.platform})
	s.platform.Mark(silent, platform.Unused)
	for range 120 {
		s.now = s.now.Add(time.Minute)
		if rep := s.run(); len(rep.Removed) != 0 || rep.Err != nil {
			t.Fatalf("%v are ended: %v", rep.Removed, rep.Err)
		}
	}
}

// begun is a platform in whose units jobs begin just before they are ended.
type begun struct{ *model.Model }

func (begun) End(context.Context, string) error { return platform.ErrBegun }

// silentSite has one unit, which runs and does not report.
func silentSite(t *testing.T) (s *site, silent string) {
	t.Helper()
	s = newSite(t)
	s.config.Templates[0].EndUnreported = 30 * time.Minute
	s.restart(s.platform)
	s.pool.groups = []demand.Group{jobs(t, 1, plainJob)}
	made := s.run().Made
	if len(made) != 1 {
		t.Fatalf("%v are made", made)
	}
	s.pool.groups = nil
	s.platform.Begin(made[0])
	return s, made[0]
}

// A round that does nothing tells of the units that it would end, also if it is the
// first one and knows nothing of them yet.
func TestUnreportedInADryRun(t *testing.T) {
	for _, use := range []platform.Use{platform.Unused, platform.UseUnknown, platform.Used} {
		s, silent := silentSite(t)
		s.platform.Mark(silent, use)
		began := s.now
		s.config.DryRun = true
		s.restart(s.platform)
		s.now = s.now.Add(29 * time.Minute)
		if rep := s.run(); len(rep.Silent) != 0 {
			t.Errorf("after 29 minutes there are %+v", rep.Silent)
		}
		s.now = s.now.Add(2 * time.Minute)
		want := []Silent{{Unit: silent, Began: began, Missed: map[platform.Use]time.Duration{platform.Unused: updates, platform.UseUnknown: 30 * time.Minute}[use]}}
		if use == platform.Used {
			want = nil
		}
		if diff := cmp.Diff(want, s.run().Silent); diff != "" {
			t.Errorf("use %d: -want +got\n%s", use, diff)
		}
		var rep Report
		for range 10 {
			s.now = s.now.Add(time.Minute)
			rep = s.run()
		}
		if len(rep.Removed) != 0 || len(rep.Silent) > 0 && rep.Silent[0].Ends != (use == platform.Unused) {
			t.Errorf("use %d: %v are ended, and %+v", use, rep.Removed, rep.Silent)
		}
	}
}

// arriving is a pool in which a pod reports while a round goes on.
type arriving struct {
	*pool
	calls int
	come  map[string]*supply.Pod
	err   error
}

func (a *arriving) Slots(ctx context.Context) (map[string]*supply.Pod, error) {
	if a.calls++; a.calls > 1 {
		return a.come, a.err
	}
	return a.pool.Slots(ctx)
}

// A round that waits minutes for schedds ends no pod that has reported meanwhile, and
// may have a job, nor one of which the collector says nothing any more.
func TestUnreportedThatReportsInTheRound(t *testing.T) {
	for name, c := range map[string]struct {
		come bool
		err  error
		want int
	}{
		"silent": {want: 1}, "reported": {come: true}, "not known": {err: errors.New("away")},
	} {
		s, silent := silentSite(t)
		a := &arriving{pool: s.pool, come: map[string]*supply.Pod{}, err: c.err}
		if c.come {
			a.come[silent] = &supply.Pod{}
		}
		s.round = New(s.config, a, s.platform)
		s.now = s.now.Add(-time.Minute)
		s.platform.Begin(silent)
		s.round.health.accepted("plain/one", silent) // it was made by this one
		removed := 0
		for range 60 {
			a.calls = 0
			s.now = s.now.Add(time.Minute)
			removed += len(s.run().Removed)
		}
		if removed != c.want {
			t.Errorf("%s: %d pods are ended", name, removed)
		}
	}
}
