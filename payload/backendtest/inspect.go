package backendtest

import (
	"testing"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// checkAndAudit: a backend with nothing wrong says so; a mistake is an error of Check
// and a bad finding of Audit, which names what to change.
func checkAndAudit(t *testing.T, f Fixture) {
	well := f.Inspected(t, false)
	warnings, err := well.Check(agenttest.Context(t))
	if err != nil || len(warnings) > 0 {
		t.Errorf("a check of what is well: %q, %v", warnings, err)
	}
	if bad := graded(t, well)[payload.Bad]; bad != nil {
		t.Errorf("an audit of what is well: %+v", bad)
	}
	wrong := f.Inspected(t, true)
	if wrong == nil {
		return
	}
	if _, err := wrong.Check(agenttest.Context(t)); err == nil {
		t.Error("a check of what is wrong finds nothing")
	}
	if graded(t, wrong)[payload.Bad] == nil {
		t.Error("an audit of what is wrong finds nothing bad")
	}
}

// graded are the findings of an audit, each of which is complete.
func graded(t *testing.T, b payload.Backend) map[payload.Grade][]payload.Finding {
	t.Helper()
	by := make(map[payload.Grade][]payload.Finding)
	for _, found := range b.Audit(agenttest.Context(t)) {
		by[found.Grade] = append(by[found.Grade], found)
		if found.What == "" || found.Detail == "" {
			t.Errorf("a finding that says nothing: %+v", found)
		}
		if (found.Grade == payload.OK) != (found.Fix == "") {
			t.Errorf("what is well has nothing to mend, and all else has: %+v", found)
		}
	}
	if len(by) == 0 {
		t.Error("an audit without a finding")
	}
	return by
}

// auditBesideJob: neither disturbs a job.
func auditBesideJob(t *testing.T, f Fixture) {
	l := lease(t, f.Backend)
	c := bound(t, l, "")
	j := start(t, l, c, "sleep")
	_, _ = f.Backend.Check(agenttest.Context(t))
	f.Backend.Audit(agenttest.Context(t))
	j.goesOn()
	j.sweep()
}
