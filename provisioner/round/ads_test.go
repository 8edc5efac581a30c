package round

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/supply"
)

func parse(t *testing.T, text string) *classads.Ad {
	t.Helper()
	ad, err := classads.ParseOld(text)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

// advertise makes a pod that reports, and whose slot advertises an ad.
func (s *site) advertise(lines string) {
	s.t.Helper()
	s.pool.groups = []demand.Group{jobs(s.t, 1, plainJob)}
	rep := s.run()
	if len(rep.Made) != 1 {
		s.t.Fatalf("%v are made: %+v", rep.Made, rep.Output.Groups)
	}
	s.platform.Begin(rep.Made[0])
	slot := "slot1@" + rep.Made[0]
	s.pool.slots[rep.Made[0]] = &supply.Pod{Slot: slot, Claims: []supply.Claim{{}}}
	s.pool.ads = map[string]*classads.Ad{slot: parse(s.t, lines)}
	s.pool.groups = nil
	s.run()
}

const choosy = "DaemonStartTime = 1\nRequirements = START\nSTART = TARGET.ProjectName == \"x\" && HasNFS\nHasNFS = true"

// What pods advertise decides what matches. Jobs are grouped by what it refers to
// from the first round on that knows it.
func TestSlotsAreLearnt(t *testing.T) {
	s := newSite(t)
	s.advertise(choosy)
	if len(s.pool.asked) != 1 || !slices.Equal(s.pool.others, []string{"ProjectName"}) {
		t.Fatalf("slots were asked for %q, and jobs by %q", s.pool.asked, s.pool.others)
	}
	nfs := strings.ReplaceAll(plainJob, "Requirements = ", "Requirements = TARGET.HasNFS && TARGET.Cpus == 1 && ")
	s.pool.groups = []demand.Group{jobs(t, 5, nfs), jobs(t, 3, nfs+"\nProjectName = \"x\"")}
	rep := s.run()
	if len(rep.Made) != 3 {
		t.Errorf("%v are made for 3 jobs that match and 5 that do not", rep.Made)
	}
	// A pod of another size has the same abilities, and another START perhaps.
	s.pool.groups = []demand.Group{jobs(t, 1, strings.ReplaceAll(nfs, "TARGET.Cpus == 1", "TARGET.Cpus == 4"))}
	if rep := s.run(); len(rep.Made) != 1 {
		t.Errorf("%v are made for a job that needs the other shape", rep.Made)
	}
}

// Slots are asked once in ten minutes; a shape of which nothing is known sooner.
func TestHowOftenSlotsAreAsked(t *testing.T) {
	s := newSite(t)
	s.advertise(choosy)
	for range 120 {
		s.now = s.now.Add(10 * time.Second)
		s.run()
	}
	if n := len(s.pool.asked); n != 3 {
		t.Errorf("in 20 minutes slots are asked %d times, want 3", n)
	}
	// One that says nothing of use is asked once a minute at most.
	s.pool.asked = nil
	s.restart(s.platform)
	for _, ad := range s.pool.ads {
		ad.SetBool("Requirements", false)
	}
	if rep := s.run(); rep.Err != nil {
		t.Errorf("a pod that ends is an error: %v", rep.Err)
	}
	for _, ad := range s.pool.ads {
		ad.Delete("Requirements")
	}
	for range 30 {
		s.now = s.now.Add(10 * time.Second)
		s.run()
	}
	if n := len(s.pool.asked); n != 6 {
		t.Errorf("in 5 minutes slots are asked %d times, want 6", n)
	}
	s.now = s.now.Add(time.Minute)
	if rep := s.run(); rep.Err == nil || !strings.Contains(rep.Err.Error(), "has no Requirements") {
		t.Errorf("the error is %v", rep.Err)
	}
}

// A slot's ad by which jobs make too many groups is not followed.
func TestAdsThatMakeTooManyGroups(t *testing.T) {
	s := newSite(t)
	s.pool.tooMuch = "ProjectName"
	s.advertise(choosy)
	s.pool.groups = []demand.Group{jobs(t, 4, plainJob)}
	rep := s.run()
	if rep.Err != nil || len(rep.Made) != 4 || len(s.pool.others) != 0 {
		t.Errorf("%v are made, by %q, %v", rep.Made, s.pool.others, rep.Err)
	}
	s.pool.asked = nil
	for range 50 {
		s.now = s.now.Add(time.Minute)
		s.run()
	}
	if len(s.pool.asked) != 0 {
		t.Errorf("slots are asked again: %q", s.pool.asked)
	}
	s.now = s.now.Add(11 * time.Minute)
	if rep := s.run(); !errors.Is(rep.Err, demand.ErrTooMuch) {
		t.Errorf("after an hour nothing is learnt: %v", rep.Err)
	}
}

// serve lets pods begin, report, wait for a job for four minutes, and end.
func (s *site) serve(began map[string]time.Time) {
	units, _ := s.platform.List(s.t.Context())
	for _, u := range units {
		switch at, ok := began[u.Name]; {
		case !ok:
			s.report(u.Name, resources.Amount{CPUs: 1, Memory: 2048, Disk: 1 << 20})
			began[u.Name] = s.now
		case s.now.Sub(at) >= 4*time.Minute && s.pool.slots[u.Name] != nil:
			delete(s.pool.slots, u.Name)
			s.platform.Finish(u.Name)
			s.platform.Forget(u.Name)
		}
	}
}

// Jobs that match here and never take a pod cost a bounded number of pods, whatever
// the reason.
func TestJobsThatTakeNoPod(t *testing.T) {
	for name, c := range map[string]struct {
		groups, most, least int
	}{
		"one group": {groups: 1, least: 25, most: 20 + 12},
		// It takes five minutes to notice; then the template waits.
		"500 groups": {groups: 500, least: 25, most: 6*50 + 12},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.prove()
			s.config.Limits.PerRound = 50
			s.restart(s.platform)
			for i := range c.groups {
				s.pool.groups = append(s.pool.groups, jobs(t, 1000/c.groups, fmt.Sprintf("%s\nN = %d", plainJob, i)))
			}
			began := map[string]time.Time{}
			units, _ := s.platform.List(t.Context())
			began[units[0].Name] = s.now.Add(1000 * time.Hour)
			made, last := 0, Report{}
			for range 8 * 60 {
				s.now = s.now.Add(time.Minute)
				last = s.run()
				made += len(last.Made)
				s.serve(began)
			}
			if made < c.least || made > c.most {
				t.Errorf("%d pods are made in 8 hours, want %d to %d", made, c.least, c.most)
			}
			if w := last.Output.Groups[0].Waiting; c.groups == 1 && (len(w) != 1 || !strings.Contains(w[0].Why, "none of the jobs took one")) {
				t.Errorf("the reason is %+v", w)
			}
		})
	}
}

// A pod that a job took opens the way for the others of its group.
func TestJobsThatTakePods(t *testing.T) {
	s := newSite(t)
	s.prove()
	other := plainJob + "\nN = 1"
	s.pool.groups = []demand.Group{jobs(t, 100, other)}
	rep := s.run()
	if len(rep.Made) != 20 {
		t.Fatalf("%d pods are made, want 20", len(rep.Made))
	}
	if rep := s.run(); len(rep.Made) != 0 || !strings.Contains(rep.Output.Groups[0].Waiting[0].Why, "at most 20 are tried") {
		t.Errorf("%d pods are made, %+v", len(rep.Made), rep.Output.Groups[0])
	}
	s.report(rep.Made[0], resources.Amount{})
	s.pool.slots[rep.Made[0]].Started = 1
	if rep := s.run(); len(rep.Made) != 81 {
		t.Errorf("%d pods are made, want 81: %+v", len(rep.Made), rep.Output.Groups[0])
	}
}

// A pod that waits while there is no idle job of its group is nobody's fault.
func TestPodsWithoutDemand(t *testing.T) {
	s := newSite(t)
	s.prove()
	for range 5 {
		s.pool.groups = []demand.Group{jobs(t, 2, plainJob)}
		rep := s.run()
		if len(rep.Made) != 2 {
			t.Fatalf("%d pods are made: %+v", len(rep.Made), rep.Output.Groups)
		}
		s.pool.groups = nil
		for range 6 {
			for _, name := range rep.Made {
				s.report(name, resources.Amount{CPUs: 1})
			}
			s.now = s.now.Add(time.Minute)
			s.run()
		}
		for _, name := range rep.Made {
			delete(s.pool.slots, name)
			s.platform.Finish(name)
		}
		s.run()
	}
}
