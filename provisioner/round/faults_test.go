package round

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"podstarter/provisioner/demand"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/model"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/supply"
)

// A unit that is being deleted takes no job, and is not withdrawn again.
func TestUnitThatIsDeleted(t *testing.T) {
	s := newSite(t)
	s.prove()
	s.pool.groups = []demand.Group{jobs(t, 2, plainJob)}
	for _, name := range s.run().Made {
		s.platform.Leave(name)
	}
	for range 10 {
		rep := s.run()
		if len(rep.Withdrawn) != 0 {
			t.Fatalf("%v are withdrawn", rep.Withdrawn)
		}
		if made := len(rep.Made); made != 0 && made != 2 {
			t.Fatalf("%v are made in the place of 2", rep.Made)
		}
		s.now = s.now.Add(time.Minute)
	}
	if n := s.units()[platform.Pending]; n != 4 {
		t.Errorf("%d units wait, want 2 that are deleted and 2 in their place", n)
	}
}

// An ad that names a unit which does not run does not make its template one that
// works.
func TestAdOfPendingUnit(t *testing.T) {
	s := newSite(t)
	s.pool.groups = []demand.Group{jobs(t, 50, plainJob)}
	rep := s.run()
	if len(rep.Made) == 0 {
		t.Fatal("nothing is made")
	}
	s.pool.slots[rep.Made[0]] = &supply.Pod{Free: resources.Amount{CPUs: 100}}
	if rep := s.run(); len(rep.Made) != 0 {
		t.Errorf("%v are made although no unit has begun", rep.Made)
	}
}

// broken is a platform that fails for some templates, and counts its calls.
type broken struct {
	platform.Platform
	templates map[string]bool
	withdraw  bool
	calls     int
}

var errTrouble = errors.New("failed calling webhook")

func (b *broken) Create(ctx context.Context, spec platform.Spec) error {
	b.calls++
	if b.templates[spec.Template] {
		return errTrouble
	}
	return b.Platform.Create(ctx, spec)
}

func (b *broken) Withdraw(ctx context.Context, name string) error {
	b.calls++
	if b.withdraw {
		return errTrouble
	}
	return b.Platform.Withdraw(ctx, name)
}

// What fails for one template does not keep the pods of the others from being made
// in the same round; and where all fails, a round ends after a few calls, each of
// which may have taken its whole time.
func TestTemplateThatFails(t *testing.T) {
	s := newSite(t)
	var all []demand.Group
	for i := range 20 {
		more := load(t, fmt.Sprintf("name: t%d\nmanifest: job.yaml\nslot: |\n  Kind = %d\nshapes:\n- {name: one, cpus: 1, memory: 2Gi, disk: 1Gi}\n", i, i))
		s.config.Templates = append(s.config.Templates, more...)
		all = append(all, jobs(t, 2, fmt.Sprintf("Requirements = TARGET.Kind == %d\nRequestMemory = 1000", i)))
	}
	s.pool.groups = all
	b := &broken{Platform: s.platform, templates: map[string]bool{"t0": true}}
	s.restart(b)
	if rep := s.run(); len(rep.Made) != 38 || !errors.Is(rep.Err, errTrouble) {
		t.Errorf("%d are made, want 2 of each of 19 templates; the error is %v", len(rep.Made), rep.Err)
	}
	for i := range 20 {
		b.templates[fmt.Sprint("t", i)] = true
	}
	s.now = s.now.Add(time.Hour)
	b.calls = 0
	s.pool.groups = append(s.pool.groups, jobs(t, 2, "Requirements = TARGET.Kind >= 1\nRequestMemory = 1001"))
	if rep := s.run(); len(rep.Made) != 0 || b.calls == 0 || b.calls > maxFailures {
		t.Errorf("%d are made by %d calls that fail", len(rep.Made), b.calls)
	}
	b.withdraw, b.calls = true, 0
	s.pool.groups = nil
	s.run()
	s.now = s.now.Add(time.Hour)
	if rep := s.run(); len(rep.Withdrawn) != 0 || b.calls == 0 || b.calls > maxFailures {
		t.Errorf("%d are withdrawn by %d calls that fail", len(rep.Withdrawn), b.calls)
	}
}

// A clock that jumps, by any time in both directions, makes no unit too many and
// withdraws none that jobs need. When it is right again, all goes on.
func TestClockThatJumps(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for try := range 100 {
		s := newSite(t)
		// The platform has a clock of its own.
		right := s.now
		s.platform = model.New(func() time.Time { return right })
		s.restart(s.platform)
		s.prove()
		wanted := 1 + r.IntN(20)
		s.pool.groups = []demand.Group{jobs(t, wanted, plainJob)}
		for range 40 {
			right = right.Add(time.Minute)
			s.now = right
			if r.IntN(3) == 0 {
				s.now = right.Add([]time.Duration{-1, 1}[r.IntN(2)] * time.Duration(r.Int64N(int64([]time.Duration{time.Minute, time.Hour, 50 * 24 * time.Hour, 20 * 365 * 24 * time.Hour}[r.IntN(4)]))))
			}
			rep := s.run()
			if len(rep.Withdrawn) != 0 {
				t.Fatalf("try %d: %v are withdrawn although jobs need them", try, rep.Withdrawn)
			}
			if room := s.room(); room > int64(wanted) {
				t.Fatalf("try %d: there is room for %d jobs, and %d wait", try, room, wanted)
			}
		}
		s.pool.groups = nil
		for range 10 {
			right = right.Add(time.Minute)
			s.now = right
			s.run()
		}
		if n := s.units()[platform.Pending]; n != 0 {
			t.Fatalf("try %d: %d units are left without jobs", try, n)
		}
	}
}

// room counts the CPUs of the units that have not begun.
func (s *site) room() int64 {
	n := int64(0)
	units, _ := s.platform.List(context.Background())
	for _, u := range units {
		if u.Phase == platform.Pending {
			n += u.Size.CPUs
		}
	}
	return n
}

// Where the platform makes pods and removes none, such as by an admission policy, jobs
// get theirs all the same.
func TestPlatformThatRemovesNothing(t *testing.T) {
	for name, c := range map[string]struct{ begin bool }{"withdrawing": {false}, "ending": {true}} {
		s := newSite(t)
		s.config.Templates[0].EndUnreported = 30 * time.Minute
		s.config.Templates = append(s.config.Templates, load(t, "name: other\nmanifest: job.yaml\nslot: |\n  Kind = 2\nshapes:\n- {name: one, cpus: 1, memory: 2Gi, disk: 1Gi}\n")...)
		s.restart(&ending{Model: s.platform, err: errTrouble})
		s.prove()
		s.pool.groups = []demand.Group{jobs(t, 10, "Requirements = TARGET.Kind =!= 2\nRequestMemory = 1000")}
		for _, unit := range s.run().Made {
			if c.begin {
				s.platform.Begin(unit)
			}
		}
		s.pool.groups = nil
		for range missedOften {
			s.run()
			s.now = s.now.Add(5 * time.Minute)
		}
		s.now = s.now.Add(time.Hour)
		s.pool.groups = []demand.Group{jobs(t, 2, "Requirements = TARGET.Kind == 2\nRequestMemory = 1000")}
		if rep := s.run(); !errors.Is(rep.Err, errTrouble) || len(rep.Made) != 2 {
			t.Errorf("%s: %v are made, want 2; the error is %v", name, rep.Made, rep.Err)
		}
	}
}
