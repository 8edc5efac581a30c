package conformance

import (
	"strings"
	"testing"

	"podstarter/integration/harness"
)

func TestRulesNameKindsOfPools(t *testing.T) {
	unshared := harness.Kind{Versions: harness.Versions{EP: "25.14", AP: "23.9"}, Mode: harness.Unshared}
	cut := unshared
	cut.Partitionable, cut.OneSlot = true, true
	for _, tc := range []struct {
		versions, pools []string
		want            [3]bool // of an ordinary pool, in unshared mode, and with a partitionable slot for one job besides
	}{
		{nil, nil, [3]bool{true, true, true}},
		{nil, []string{"shared"}, [3]bool{true, false, false}},
		{nil, []string{"unshared"}, [3]bool{false, true, true}},
		{nil, []string{"unshared", "rootless"}, [3]bool{false, true, true}},
		{nil, []string{"unshared partitionable"}, [3]bool{false, false, true}},
		{nil, []string{"shared", "static"}, [3]bool{true, true, false}},
		{nil, []string{"several-slots"}, [3]bool{true, true, false}},
		{nil, []string{"one-slot"}, [3]bool{false, false, true}},
		{nil, []string{"*+23.9 static"}, [3]bool{false, true, false}},
		{[]string{"*+25.14"}, []string{"static"}, [3]bool{true, false, false}},
		{[]string{"*+25.14"}, []string{"unshared"}, [3]bool{}},
	} {
		r, c := Rule{Versions: tc.versions, Pools: tc.pools}, Case{Versions: tc.versions, Pools: tc.pools}
		for i, k := range []harness.Kind{Newest, unshared, cut} {
			if r.For(k) != tc.want[i] || c.For(k) != tc.want[i] {
				t.Errorf("%q, %q for %s: a rule %t, a case %t, want %t", tc.versions, tc.pools, k, r.For(k), c.For(k), tc.want[i])
			}
		}
		if err := checkKinds(tc.pools); err != nil {
			t.Error(err)
		}
	}
	for _, words := range []string{"", "root", "rootless dynamic"} {
		if err := checkKinds([]string{words}); err == nil || !strings.Contains(err.Error(), "kind of pool") {
			t.Errorf("%q: error %v", words, err)
		}
	}
	for _, c := range Cases() {
		if err := checkKinds(c.Pools); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}
