package backendtest

import (
	"testing"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// checkAndAudit: both report nothing wrong about a correct backend. A mistake is an error
// of Check, and a bad finding of Audit that names what to change.
func checkAndAudit(t *testing.T, f Fixture) {
	well := f.Inspected(t, false)
	warnings, err := well.Check(agenttest.Context(t))
	if err != nil || len(warnings) > 0 {
		t.Errorf("check of a correct backend: %q, %v", warnings, err)
	}
	if bad := graded(t, well)[payload.Bad]; bad != nil {
		t.Errorf("audit of a correct backend: %+v", bad)
	}
	wrong := f.Inspected(t, true)
	if wrong == nil {
		return
	}
	if _, err := wrong.Check(agenttest.Context(t)); err == nil {
		t.Error("the check of a wrong configuration finds nothing")
	}
	if graded(t, wrong)[payload.Bad] == nil {
		t.Error("the audit of a wrong configuration finds nothing bad")
	}
}

// graded gives the findings of an audit by grade, and checks that each is complete.
func graded(t *testing.T, b payload.Backend) map[payload.Grade][]payload.Finding {
	t.Helper()
	by := make(map[payload.Grade][]payload.Finding)
	for _, found := range b.Audit(agenttest.Context(t)) {
		by[found.Grade] = append(by[found.Grade], found)
		if found.What == "" || found.Detail == "" {
			t.Errorf("an empty finding: %+v", found)
		}
		if (found.Grade == payload.OK) != (found.Fix == "") {
			t.Errorf("a finding needs a fix if and only if it is not OK: %+v", found)
		}
	}
	if len(by) == 0 {
		t.Error("the audit has no findings")
	}
	return by
}

// auditBesideJob: neither Check nor Audit disturbs a job.
func auditBesideJob(t *testing.T, f Fixture) {
	l := lease(t, f.Backend)
	c := bound(t, l, "")
	j := start(t, l, c, "sleep")
	_, _ = f.Backend.Check(agenttest.Context(t))
	f.Backend.Audit(agenttest.Context(t))
	j.goesOn()
	j.sweep()
}
