package round

import (
	"fmt"
	"testing"
	"time"

	"podstarter/provisioner/demand"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/model"
	"podstarter/provisioner/supply"
)

// Free slots of which some have a little less disk than others, as where it is the
// node's, are room for jobs that request little.
func TestSlotsWithDifferentDisks(t *testing.T) {
	for _, slots := range []int{1, 2} {
		s := newSite(t)
		s.config.Templates = load(t, fmt.Sprintf("name: plain\nmanifest: job.yaml\nslots: %d\nshapes:\n- {name: one, cpus: 1, memory: 2Gi, disk: 1Gi}\n", slots))
		s.platform = model.New(func() time.Time { return s.now })
		s.restart(s.platform)
		s.prove()
		s.pool.groups = []demand.Group{jobs(t, 8, plainJob)}
		made := 0
		for range 8 {
			made += len(s.run().Made)
			s.now = s.now.Add(time.Minute)
			units, _ := s.platform.List(t.Context())
			for i, u := range units {
				if u.Phase == platform.Pending {
					free := s.round.shapes[0].Pod
					free.Disk -= int64(1 + i)
					s.report(u.Name, free)
					whole := s.round.shapes[0].Size
					whole.Disk -= int64(1 + i)
					s.pool.slots[u.Name] = &supply.Pod{Free: free, Whole: whole}
				}
			}
		}
		if want := 8 / slots; made != want {
			t.Errorf("with %d slots each, %d pods are made for 8 jobs, want %d", slots, made, want)
		}
	}
}

// A pod that was made before its shape was changed has the size that it was made with.
func TestPodsOfAnOlderShape(t *testing.T) {
	s := newSite(t)
	size := s.round.shapes[0].Size
	small := platform.Spec{Name: "site-plain-old", Template: "plain", Shape: "four", Size: size, User: "alice@x"}
	if err := s.platform.Create(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	s.pool.groups = []demand.Group{jobs(t, 1, "Requirements = TARGET.Cpus >= RequestCpus\nRequestMemory = 100\nRequestCpus = 3")}
	if rep := s.run(); len(rep.Made) != 1 {
		t.Errorf("%v are made for a job that is larger than the pod on its way: %+v", rep.Made, rep.Output.Groups)
	}
	s.pool.groups = []demand.Group{jobs(t, 1, "Requirements = TARGET.Cpus >= RequestCpus\nRequestMemory = 100\nRequestCpus = 1")}
	s.restart(s.platform)
	if rep := s.run(); len(rep.Made) != 0 || rep.Output.Groups[0].Coming != 1 {
		t.Errorf("%v are made for a job for which it is large enough: %+v", rep.Made, rep.Output.Groups)
	}
}
