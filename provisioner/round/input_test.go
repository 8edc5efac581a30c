package round

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/model"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/supply"
	"podstarter/provisioner/template"
)

// What the platform and the collector say of a unit becomes what a decision knows
// of it.
func TestInput(t *testing.T) {
	templates := load(t, "name: plain\nmanifest: job.yaml\npartitionable: true\nlifetime: 8h\nrank: TARGET.RequestCpus * 7\nshapes:\n- {name: four, cpus: 4, memory: 8Gi, disk: 4Gi}\n")
	now := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	m := model.New(func() time.Time { return now })
	for _, name := range []string{"waits", "draining", "works", "removed"} {
		spec := platform.Spec{Name: name, Template: "plain", Shape: "four", User: "alice@x"}
		if name == "removed" {
			spec.Shape = "sixteen"
		}
		if err := m.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	m.Begin("draining")
	m.Begin("works")
	one := resources.Amount{CPUs: 1, Memory: 1000}
	p := &pool{
		groups: []demand.Group{jobs(t, 2, plainJob)},
		slots: map[string]*supply.Pod{
			"draining": {Draining: true},
			"works":    {Free: resources.Amount{CPUs: 3, Memory: 7000}, Claims: []supply.Claim{{Amount: one}}},
		},
	}
	r := New(Config{Prefix: "site", Templates: templates, Now: func() time.Time { return now }, ReportWithin: time.Minute, DryRun: true}, usersOf{p}, m)
	in := r.Run(t.Context()).Input
	whole := resources.Amount{CPUs: 4, Memory: 8192, Disk: 4 << 20}
	want := []decision.Pod{
		{ID: "draining", Phase: decision.Ending, Created: now, Until: now.Add(8 * time.Hour)},
		{ID: "removed", Shape: -1, Created: now},
		{ID: "waits", Created: now, Free: whole},
		{ID: "works", Phase: decision.Reported, Created: now, Until: now.Add(8 * time.Hour), Free: resources.Amount{CPUs: 3, Memory: 7000}, Claims: []decision.Claim{{Amount: one}}},
	}
	if diff := cmp.Diff(want, in.Pods); diff != "" {
		t.Errorf("the pods: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(map[string]decision.User{"alice@x": {Priority: 7, Usage: 1, Pods: 4}}, in.Users); diff != "" {
		t.Errorf("the users: -want +got\n%s", diff)
	}
	if fits := in.Fits[0]; len(fits) != 1 || fits[0].Rank != 7 || fits[0].Request.CPUs != 1 {
		t.Errorf("the fits are %+v", fits)
	}
}

// A pod has room for as many jobs as it has payload containers, however small they are, and one
// whose containers are in use has none.
func TestPayloads(t *testing.T) {
	templates := load(t, "name: plain\nmanifest: job.yaml\nslots: 3\npartitionable: true\nshapes:\n- {name: four, cpus: 4, memory: 8Gi, disk: 4Gi}\n")
	template.Contain(templates)
	now := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	m := model.New(func() time.Time { return now })
	for _, name := range []string{"full", "waits"} {
		if err := m.Create(t.Context(), platform.Spec{Name: name, Template: "plain", Shape: "four", User: "alice@x"}); err != nil {
			t.Fatal(err)
		}
	}
	m.Begin("full")
	p := &pool{
		groups: []demand.Group{jobs(t, 8, plainJob)},
		slots: map[string]*supply.Pod{
			"full": {Free: resources.Amount{CPUs: 9, Memory: 20000, Disk: 12 << 20}, Claims: slices.Repeat([]supply.Claim{{Amount: resources.Amount{CPUs: 1, Memory: 128, Disk: 1, Payloads: 1}}}, 3)},
		},
	}
	r := New(Config{Prefix: "site", Templates: templates, Now: func() time.Time { return now }, ReportWithin: time.Minute, DryRun: true}, usersOf{p}, m)
	rep := r.Run(t.Context())
	if got := rep.Output.Groups[0]; got.Free != 0 || got.Coming != 3 || got.New != 5 || len(rep.Output.Create) != 1 || rep.Output.Create[0].Count != 2 {
		t.Errorf("for 8 jobs, with one pod of three containers on its way and one that is full: %+v, %+v", got, rep.Output.Create)
	}
}

// A pod with GPUs is made for those who request some.
func TestNeedsNoGPU(t *testing.T) {
	templates := load(t, "name: gpu\nmanifest: job.yaml\nshapes:\n- {name: one, cpus: 4, memory: 8Gi, disk: 4Gi, gpus: 1}\n")
	m := model.New(time.Now)
	p := &pool{groups: []demand.Group{jobs(t, 2, plainJob), jobs(t, 3, plainJob+"\nRequestGPUs = 1")}}
	rep := New(Config{Prefix: "site", Templates: templates, Now: time.Now, ReportWithin: time.Minute, DryRun: true}, usersOf{p}, m).Run(t.Context())
	want := []decision.Outcome{
		{Idle: 2, Waiting: []decision.Reason{{Jobs: 2, Cause: decision.NeedsNoGPU, Why: "pods with GPUs are made for jobs that request GPUs"}}}, {Idle: 3, New: 3},
	}
	if diff := cmp.Diff(want, rep.Output.Groups); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// usersOf is a pool whose accountant knows somebody.
type usersOf struct{ *pool }

func (usersOf) Users(context.Context) (map[string]decision.User, error) {
	return map[string]decision.User{"alice@x": {Priority: 7, Usage: 1}}, nil
}

// What is known of units goes when they go, and a clock that was set back does not
// keep a template or a shape closed.
func TestHealth(t *testing.T) {
	now := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	h := newHealth(time.Minute, time.Hour, []template.Template{{Name: "plain"}})
	failed := platform.Unit{Spec: platform.Spec{Name: "a", Template: "plain"}, Phase: platform.Ended, Ended: now.Add(-3 * time.Hour), Trouble: "Failed"}
	h.look([]platform.Unit{failed}, nil, now)
	// It failed three hours ago: the wait is over.
	if n, why := h.state("plain", now).Allowance(now); n != 1 {
		t.Errorf("%d may be tried: %s", n, why)
	}
	h.look(nil, nil, now)
	if len(h.units) != 0 {
		t.Errorf("%d units are remembered, and none is there", len(h.units))
	}
	failed.Name, failed.Ended = "b", now
	h.look([]platform.Unit{failed}, nil, now)
	h.denied("plain/one", now)
	before := now.Add(-1000 * time.Hour)
	for _, at := range []time.Time{before, before.Add(2 * time.Hour)} {
		n, _ := h.state("plain", at).Allowance(at)
		if closed := h.closed("plain/one", at); (n == 0) != (at == before) || (closed != "") != (at == before) {
			t.Errorf("at %s, %d may be tried, and the shape is closed: %q", at, n, closed)
		}
	}
}

// Jobs do not count on a slot that rests, unless it does so for no longer than they
// would wait for one that a job leaves.
func TestSlotThatRests(t *testing.T) {
	for after, want := range map[time.Duration]decision.Outcome{
		-time.Second:     {Idle: 1, Free: 1},
		30 * time.Second: {Idle: 1, Soon: 1},
		20 * time.Minute: {Idle: 1, New: 1},
	} {
		s := newSite(t)
		s.prove()
		units, _ := s.platform.List(t.Context())
		s.pool.slots[units[0].Name] = &supply.Pod{Rests: []supply.Rest{{Amount: units[0].Size, Until: s.now.Add(after)}}}
		s.pool.groups = []demand.Group{jobs(t, 1, plainJob)}
		if diff := cmp.Diff([]decision.Outcome{want}, s.run().Output.Groups); diff != "" {
			t.Errorf("%s: -want +got\n%s", after, diff)
		}
	}
}
