package round

import (
	"strings"
	"testing"
	"time"

	"podstarter/provisioner/demand"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/supply"
)

// Pods that report and end before a job could begin in them come no more often than
// those that wait for one in vain.
func TestPodsThatEndSoon(t *testing.T) {
	for name, c := range map[string]struct {
		lives time.Duration
		fails bool
		stays bool // its slot's ad, as after a crash
		mute  bool // it never reports
		use   platform.Use
	}{
		"it ends by itself too soon":  {lives: time.Minute, use: platform.Unused},
		"it crashes":                  {lives: 20 * time.Second, fails: true, stays: true, use: platform.Unused},
		"one of another kind":         {lives: time.Minute},
		"it ends at once, and well":   {lives: time.Second, mute: true},
		"another that crashes":        {lives: 20 * time.Second, fails: true, stays: true},
		"one that is there for a bit": {lives: 100 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.pool.groups = []demand.Group{jobs(t, 4, plainJob)}
			began := map[string]time.Time{}
			made := 0
			for range 12 * 60 {
				units, _ := s.platform.List(t.Context())
				for _, u := range units {
					switch at, ok := began[u.Name]; {
					case !ok && s.now.Sub(u.Created) >= 40*time.Second:
						began[u.Name] = s.now
						s.report(u.Name, resources.Amount{CPUs: 1, Memory: 2048, Disk: 1 << 20})
						if c.mute {
							delete(s.pool.slots, u.Name)
						}
						s.platform.Mark(u.Name, c.use)
					case ok && u.Phase == platform.Running && s.now.Sub(at) >= c.lives:
						s.platform.Finish(u.Name)
						if c.fails {
							s.platform.Fail(u.Name)
						}
						if !c.stays {
							delete(s.pool.slots, u.Name)
						}
					}
				}
				if s.now.Second() == 0 {
					made += len(s.run().Made)
				}
				s.now = s.now.Add(20 * time.Second)
			}
			if rep := s.run(); len(rep.Made) == 0 && !strings.Contains(rep.Output.Groups[0].Waiting[0].Why, "ended before a job began") && c.lives < 100*time.Second {
				t.Errorf("the reason is %q", rep.Output.Groups[0].Waiting[0].Why)
			}
			if made > 30 {
				t.Errorf("%d pods are made for 4 jobs in four hours, none of which could run", made)
			}
		})
	}
}

// A pod that is gone before a job has taken it, such as one that is preempted, keeps
// nobody waiting, nor do pods in which jobs too short to be seen have run.
func TestPodsThatEndSoonNowAndThen(t *testing.T) {
	s := newSite(t)
	s.pool.groups = []demand.Group{jobs(t, 3, plainJob)}
	for i := range 60 {
		s.now = s.now.Add(time.Minute)
		rep := s.run()
		if len(rep.Made) != 3 {
			t.Fatalf("in round %d %v are made: %+v", i, rep.Made, rep.Output.Groups)
		}
		for n, name := range rep.Made {
			s.report(name, resources.Amount{CPUs: 1, Memory: 2048, Disk: 1 << 20})
			s.platform.Mark(name, platform.Unused)
			if n == 2 && i%2 == 0 { // the last one has a job, which only one of both tells
				s.platform.Mark(name, platform.Used)
			} else if n == 2 {
				s.pool.slots[name].Claims = []supply.Claim{{}}
			}
		}
		s.pool.groups[0].Parts[0].Idle = 0
		s.now = s.now.Add(time.Minute)
		s.run()
		s.pool.groups[0].Parts[0].Idle = 3
		for _, name := range rep.Made {
			delete(s.pool.slots, name)
			s.platform.Finish(name)
		}
	}
}

// A provisioner that begins anew, also in each round, knows of pods that ended a short
// while ago whether a job has taken them.
func TestPodsThatNoJobTakesAndRestarts(t *testing.T) {
	s := newSite(t)
	s.pool.groups = []demand.Group{jobs(t, 4, plainJob)}
	began, ended := map[string]time.Time{}, map[string]time.Time{}
	made := 0
	for range 4 * 60 {
		units, _ := s.platform.List(t.Context())
		for _, u := range units {
			switch {
			case began[u.Name].IsZero():
				began[u.Name] = s.now
				s.report(u.Name, resources.Amount{CPUs: 1, Memory: 2048, Disk: 1 << 20})
				s.platform.Mark(u.Name, platform.Unused)
			case u.Phase == platform.Running && s.now.Sub(began[u.Name]) >= 4*time.Minute:
				s.platform.Finish(u.Name)
				ended[u.Name] = s.now
				delete(s.pool.slots, u.Name)
			case u.Phase == platform.Ended && s.now.Sub(ended[u.Name]) >= 10*time.Minute:
				s.platform.Forget(u.Name)
			}
		}
		s.restart(s.platform)
		made += len(s.run().Made)
		s.now = s.now.Add(time.Minute)
	}
	if made > 50 {
		t.Errorf("%d pods are made for 4 jobs in four hours, none of which took one", made)
	}
}
