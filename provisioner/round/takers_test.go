package round

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/platform"
)

// What a unit says of its template is written in a label that others may change: no
// row is kept of a template that is not configured.
func TestRowsOfTemplatesThatAreGone(t *testing.T) {
	s := newSite(t)
	for i := range 100 {
		spec := platform.Spec{Name: fmt.Sprint("x", i), Template: fmt.Sprint("gone", i), Shape: "one", Group: "g"}
		if err := s.platform.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		s.platform.Begin(spec.Name)
	}
	s.run()
	if k := &s.round.takers; len(k.rows) != 1 || k.rows["plain"] == nil || len(k.pairs) != 0 {
		t.Errorf("there are %d rows and %d pairs", len(k.rows), len(k.pairs))
	}
}

// A round tells that no job has taken the last pods of a template.
func TestUntakenInAReport(t *testing.T) {
	s := newSite(t)
	s.prove()
	for i := range inARow {
		s.pool.groups = []demand.Group{jobs(t, 1, fmt.Sprintf("%s\nKind = %d", plainJob, i))}
		if u := s.round.takers.untaken(s.config.Templates)[0]; u.Left != i || u.State.Failures != 0 {
			t.Fatalf("after %d pods there are %+v", i, u)
		}
		rep := s.run()
		if len(rep.Made) != 1 {
			t.Fatalf("%v are made", rep.Made)
		}
		s.report(rep.Made[0], s.round.shapes[0].Pod)
		for range 2 {
			s.run()
			s.now = s.now.Add(takeAtLeast)
		}
		delete(s.pool.slots, rep.Made[0])
		s.platform.Finish(rep.Made[0])
		s.run()
		s.platform.Forget(rep.Made[0])
		s.now = s.now.Add(time.Minute)
	}
	u := s.run().Untaken[0]
	if u.Left != inARow || u.State.Reason != backoff.Untaken || u.State.Failures != 1 || !u.State.Until.After(s.now) {
		t.Errorf("the round says %+v", u)
	}
}

// nobodyTakes makes pods in a row, one for a group each, that report and end without a job.
func (s *site) nobodyTakes(group func(kind int) demand.Group) {
	s.t.Helper()
	for i := range inARow {
		s.pool.groups = []demand.Group{group(i)}
		rep := s.run()
		if len(rep.Made) != 1 {
			s.t.Fatalf("%v are made: %+v", rep.Made, rep.Output.Groups)
		}
		s.report(rep.Made[0], s.round.shapes[0].Pod)
		for range 2 {
			s.run()
			s.now = s.now.Add(takeAtLeast)
		}
		delete(s.pool.slots, rep.Made[0])
		s.platform.Finish(rep.Made[0])
		s.run()
		s.platform.Forget(rep.Made[0])
		s.now = s.now.Add(time.Minute)
	}
}

// Pods that jobs of another pool's schedd do not take keep none from this pool's jobs,
// and that schedd's groups try one after another.
func TestUntakenByGuests(t *testing.T) {
	s := newSite(t)
	s.prove()
	guest := func(kind int) demand.Group {
		row := demand.Row{Ad: jobs(t, 1, fmt.Sprintf("%s\nKind = %d", plainJob, kind)).Ad, User: "eve@y", Owner: "eve@y", Jobs: 1}
		return demand.Merge([]demand.Answer{{Source: demand.Source{Name: "guest", Pool: "cm.y"}, Rows: []demand.Row{row}}})[0]
	}
	s.nobodyTakes(guest)
	var kinds []demand.Group
	for i := range 50 {
		kinds = append(kinds, guest(1000+i))
	}
	s.pool.groups = kinds
	if rep := s.run(); len(rep.Made) != 0 {
		t.Errorf("%d pods are made for the schedd of which no job took the last ones", len(rep.Made))
	}
	s.now = s.now.Add(10 * time.Minute)
	first := s.run()
	if len(first.Made) != 1 {
		t.Errorf("%d pods are tried for that schedd", len(first.Made))
	}
	s.pool.groups = append(slices.Clone(kinds), jobs(t, 3, plainJob+"\nKind = 1"))
	rep := s.run()
	if own := rep.Output.Groups[len(rep.Groups)-1]; own.Coming+own.New != 3 {
		t.Errorf("the pool's own jobs get %+v", own)
	}
}

// Pods that the jobs of one user do not take, such as beyond a quota or a limit of the
// accountant, keep none from the jobs of another one.
func TestUntakenOfOneUser(t *testing.T) {
	s := newSite(t)
	s.prove()
	of := func(owner string, kind int) demand.Group {
		g := jobs(t, 1, fmt.Sprintf("%s\nKind = %d", plainJob, kind))
		g.Parts[0].Owner = owner
		return g
	}
	s.nobodyTakes(func(kind int) demand.Group { return of("alice@x", kind) })
	s.pool.groups = []demand.Group{of("alice@x", 100)}
	if rep := s.run(); len(rep.Made) != 0 || rep.Output.Groups[0].Waiting[0].Cause != decision.Untaken {
		t.Errorf("%v are made for the user whose jobs took none: %+v", rep.Made, rep.Output.Groups)
	}
	s.pool.groups = []demand.Group{of("bob@x", 200)}
	if rep := s.run(); len(rep.Made) != 1 {
		t.Errorf("%v are made for another user: %+v", rep.Made, rep.Output.Groups)
	}
	// In time, one is tried for her, of all her groups.
	s.now = s.now.Add(10 * time.Minute)
	s.pool.groups = []demand.Group{of("alice@x", 101), of("alice@x", 102), of("alice@x", 103)}
	units, _ := s.platform.List(t.Context())
	for _, u := range units {
		s.platform.Finish(u.Name)
	}
	if rep := s.run(); len(rep.Made) != 1 {
		t.Errorf("%v are tried: %+v", rep.Made, rep.Output.Groups)
	}
}
