package conformance

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

func TestRuleNamesTheSandbox(t *testing.T) {
	r := Rule{Name: "021   '/jobs/dir_<pid><scratch>/job'", Stock: "-", Ours: "/dir_<pid><scratch>"}
	for v, want := range map[harness.Versions][2]string{
		{EP: "25.14", AP: "23.9"}: {"021   '/jobs/dir_<pid>/scratch/job'", "/dir_<pid>/scratch"},
		{EP: "23.9", AP: "25.14"}: {"021   '/jobs/dir_<pid>/job'", "/dir_<pid>"},
	} {
		got := r.With(v)
		if diff := cmp.Diff(want, [2]string{got.Name, got.Ours}); diff != "" {
			t.Errorf("with %s:\n%s", v, diff)
		}
	}
}

func TestRuleSaysSomething(t *testing.T) {
	r := Rule{In: InHistory, Name: "a", Stock: "*", Ours: "*", Reason: "x"}
	if err := r.check(nil); err == nil {
		t.Error("a rule that accepts everything is accepted")
	}
	for _, ours := range []string{Absent, "1", "[ * ]"} {
		r.Ours = ours
		if err := r.check(nil); err != nil {
			t.Errorf("%q: %v", ours, err)
		}
	}
}
