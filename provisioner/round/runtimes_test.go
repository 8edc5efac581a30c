package round

import (
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/supply"
)

// short is idle jobs of cluster 7.
func short(t *testing.T, n int, lines string) demand.Group {
	t.Helper()
	ad, err := classads.ParseOld(lines)
	if err != nil {
		t.Fatal(err)
	}
	return demand.Merge([]demand.Answer{{Source: demand.Source{Name: "ap"}, Rows: []demand.Row{{Ad: ad, User: "alice@x", Jobs: n, IDs: "7.0 ... 7.999"}}}})[0]
}

// Once it is known that jobs are short, they share pods, and it is known when those
// that run end.
func TestRunTimesAreLearnt(t *testing.T) {
	s := newSite(t)
	s.prove()
	s.pool.groups = []demand.Group{short(t, 100, plainJob)}
	if rep := s.run(); len(rep.Made) != 100 {
		t.Fatalf("%d pods are made for 100 jobs of which nothing is known", len(rep.Made))
	}
	units, _ := s.platform.List(t.Context())
	name := units[1].Name
	s.report(name, resources.Amount{})
	claim := supply.Claim{Amount: resources.Amount{CPUs: 1, Memory: 1000}, Job: "ap#7.0#1", Began: s.now}
	s.pool.slots[name] = &supply.Pod{Claims: []supply.Claim{claim}}
	s.now = s.now.Add(time.Minute)
	s.run()
	// Ten jobs of a minute have ended.
	claim.Job, claim.Began = "ap#7.10#1", s.now
	s.pool.slots[name] = &supply.Pod{Claims: []supply.Claim{claim}, Ended: 10, Busy: 10 * time.Minute}
	s.now = s.now.Add(time.Minute)
	rep := s.run()
	if got := rep.Input.Groups[0].Runtime; got != time.Minute {
		t.Errorf("the group's jobs run for %s, want 1m", got)
	}
	for _, p := range rep.Input.Pods {
		if p.ID == name && !p.Claims[0].Until.Equal(claim.Began.Add(time.Minute)) {
			t.Errorf("the job that runs ends at %s", p.Claims[0].Until)
		}
	}
	s.pool.groups = []demand.Group{short(t, 1000, plainJob)}
	if rep := s.run(); len(rep.Made) != 0 {
		t.Errorf("%d pods are made for jobs that can follow each other in 99 that are on their way", len(rep.Made))
	}
}

// The site's expression says what jobs state.
func TestRunTimesThatAreStated(t *testing.T) {
	for expression, want := range map[string]time.Duration{
		"MaxWallTime * 60": 20 * time.Minute,
		"Absent":           0,
		"-1":               0,
		"\"20\"":           0,
		"1.0E300":          longestStated,
		"real(\"NaN\")":    0,
	} {
		s := newSite(t)
		e, err := classads.ParseExpr(expression)
		if err != nil {
			t.Fatal(err)
		}
		s.config.Runtime = e
		s.restart(s.platform)
		s.pool.groups = []demand.Group{short(t, 5, plainJob+"\nMaxWallTime = 20")}
		if got := s.run().Input.Groups[0].Runtime; got != want {
			t.Errorf("%s: the jobs run for %s, want %s", expression, got, want)
		}
	}
}
