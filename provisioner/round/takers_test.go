package round

import (
	"fmt"
	"testing"
	"time"

	"podstarter/provisioner/backoff"
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
