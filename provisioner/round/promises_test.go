package round

import (
	"testing"
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/supply"
)

// staticSite is one whose pods are one slot each.
func staticSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.config.Templates = load(t, "name: plain\nmanifest: job.yaml\nshapes:\n- {name: four, cpus: 4, memory: 4Gi, disk: 4Gi}\n")
	s.restart(s.platform)
	return s
}

// come makes pods report whose slots have an amount.
func (s *site) come(made []string, whole resources.Amount) {
	for _, name := range made {
		s.platform.Begin(name)
		s.pool.slots[name] = &supply.Pod{Slot: "slot1@" + name, Free: whole, Whole: whole}
	}
}

const wholeJob = "Requirements = TARGET.Memory >= RequestMemory\nRequestMemory = 4096\nRequestCpus = 1"

// Pods whose slots have less than their shape are tried a few times for jobs that
// need all of it, and no more: one could be an exception.
func TestSlotsThatHaveLess(t *testing.T) {
	s := staticSite(t)
	made := 0
	s.pool.groups = []demand.Group{jobs(t, 50, wholeJob)}
	var rep Report
	for range 60 {
		s.now = s.now.Add(time.Minute)
		rep = s.run()
		made += len(rep.Made)
		s.come(rep.Made, resources.Amount{CPUs: 4, Memory: 4000, Disk: 4 << 20})
	}
	if made < 2 || made > 2*backoff.Proof {
		t.Errorf("%d pods are made for jobs that fit none of them", made)
	}
	want := Smaller{Shape: 0, Says: resources.Amount{CPUs: 4, Memory: 4096, Disk: 4 << 20}, Offers: resources.Amount{CPUs: 4, Memory: 4000, Disk: 4 << 20}}
	if len(rep.Smaller) != 1 || rep.Smaller[0] != want {
		t.Errorf("the round says %+v, want %+v", rep.Smaller, want)
	}
	if why := rep.Matches[0][0].Why; why == "" {
		t.Error("the jobs match")
	}
	// Jobs that need less get pods.
	s.pool.groups = []demand.Group{jobs(t, 50, plainJob)}
	s.pool.slots = map[string]*supply.Pod{}
	s.now = s.now.Add(time.Minute)
	if rep := s.run(); len(rep.Made) == 0 {
		t.Errorf("no pod is made: %+v", rep.Output.Groups)
	}
}

// One pod that has less, such as one on a node with a broken GPU, says nothing of
// others, and what pods have is believed for some hours.
func TestSlotsOfWhichSomeHaveLess(t *testing.T) {
	less, whole := resources.Amount{CPUs: 4, Memory: 4000, Disk: 4 << 20}, resources.Amount{CPUs: 4, Memory: 4096, Disk: 4 << 20}
	for name, c := range map[string]struct {
		pods []resources.Amount
		want int
	}{
		"two have less":          {[]resources.Amount{less, less}, 0},
		"three have less":        {[]resources.Amount{less, less, less}, 1},
		"one of four has all":    {[]resources.Amount{less, less, whole, less}, 0},
		"no ad says how large":   {[]resources.Amount{unsaid, unsaid, unsaid}, 0},
		"they claim to be large": {[]resources.Amount{unsaid.Plus(unsaid), unsaid, whole.Plus(whole)}, 0},
	} {
		s := staticSite(t)
		var made []string
		for i, whole := range c.pods {
			s.pool.groups = []demand.Group{jobs(t, 1, wholeJob)}
			rep := s.run()
			if len(rep.Made) != 1 {
				t.Fatalf("%s: pod %d: %v are made: %+v", name, i, rep.Made, rep.Output.Groups)
			}
			s.come(rep.Made, whole)
			s.pool.slots[rep.Made[0]].Claims = []supply.Claim{{Amount: whole}}
			s.pool.slots[rep.Made[0]].Free = resources.Amount{}
			made = append(made, rep.Made...)
		}
		s.pool.groups = nil
		if rep := s.run(); len(rep.Smaller) != c.want {
			t.Errorf("%s: %+v", name, rep.Smaller)
		}
		if c.want == 0 {
			continue
		}
		// The pods go, and the site mends it.
		for _, name := range made {
			s.platform.Finish(name)
			s.platform.Forget(name)
		}
		s.pool.slots = map[string]*supply.Pod{}
		s.now = s.now.Add(backoff.Forget - time.Minute)
		if rep := s.run(); len(rep.Smaller) != 1 {
			t.Errorf("%s: within %s it is forgotten", name, backoff.Forget)
		}
		s.now = s.now.Add(2 * time.Minute)
		s.pool.groups = []demand.Group{jobs(t, 1, wholeJob)}
		if rep := s.run(); len(rep.Smaller) != 0 || len(rep.Made) != 1 {
			t.Errorf("%s: after %s it is not forgotten", name, backoff.Forget)
		}
	}
}

// A pod that was made when its shape had another size says nothing of it.
func TestSlotsOfAnOlderSize(t *testing.T) {
	s := staticSite(t)
	s.pool.groups = []demand.Group{jobs(t, 3, wholeJob)}
	s.come(s.run().Made, resources.Amount{CPUs: 4, Memory: 4096, Disk: 4 << 20})
	s.config.Templates = load(t, "name: plain\nmanifest: job.yaml\nshapes:\n- {name: four, cpus: 4, memory: 8Gi, disk: 4Gi}\n")
	s.restart(s.platform)
	if rep := s.run(); len(rep.Smaller) != 0 {
		t.Errorf("%+v", rep.Smaller)
	}
}

var unsaid = resources.Amount{CPUs: 1 << 40, Memory: 1 << 40, Disk: 1 << 40, GPUs: 1 << 40}
