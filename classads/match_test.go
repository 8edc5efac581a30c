package classads

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMatches(t *testing.T) {
	machine, err := ParseNew(`[ Memory = 2048; Requirements = TARGET.RequestMemory <= Memory; Rank = TARGET.Prio ]`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		job          string
		accepts, fit bool
		rank         float64
	}{
		{`[ RequestMemory = 1024; Prio = 5; Requirements = Memory > 1000; Rank = TARGET.Memory / 2.0 ]`, true, true, 1024},
		{`[ RequestMemory = 4096; Requirements = true; Rank = "none" ]`, true, false, 0},
		{`[ RequestMemory = 1024; Requirements = MY.Memory > 1000 ]`, false, false, 0},
		{`[ RequestMemory = 1024; Requirements = error ]`, false, false, 0},
		{`[ RequestMemory = 1024 ]`, false, false, 0},
		{`[ RequestMemory = 1024; Requirements = 1 ]`, true, true, 0},
	} {
		job, err := ParseNew(c.job)
		if err != nil {
			t.Fatal(err)
		}
		if got := Accepts(job, machine, Env{}); got != c.accepts {
			t.Errorf("%s accepts: %v", c.job, got)
		}
		if got := Matches(job, machine, Env{}); got != c.fit {
			t.Errorf("%s matches: %v", c.job, got)
		}
		if got := Rank(job, machine, Env{}); got != c.rank {
			t.Errorf("%s ranks %v, want %v", c.job, got, c.rank)
		}
	}
}

func TestReferencesAndFlatten(t *testing.T) {
	ad, err := ParseNew(`[ a = 1; b = a + TARGET.m; s = "x"; n = [ k = a ]; c = c1; c1 = c ]`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ expr, external, internal, flat string }{
		{"a + 1", "", "a", "2"},
		{"b > missing", "missing,TARGET.m", "a,b", "b > missing"},
		{"1 + missing + 2 + a", "missing", "a", "4 + missing"},
		{"true && TARGET.x", "TARGET.x", "", "TARGET.x"},
		{"false && TARGET.x", "TARGET.x", "", "false"},
		{"0 || TARGET.x", "TARGET.x", "", "false || TARGET.x"},
		{"a == 1 ? TARGET.y : z", "TARGET.y,z", "a", "TARGET.y"},
		{"missing ? a : s", "missing", "a,s", `missing ? 1 : "x"`},
		{"strcat(s, missing, toUpper(s))", "missing", "s", `strcat("x",missing,"X")`},
		{"n.k + { a,missing }[0]", "missing", "a,n", "1 + { 1,missing }[0]"},
		{"missing ?: a", "missing", "a", "missing ?: 1"},
		{"[ q = a; r = missing ]", "missing", "a", "[ q = 1; r = missing ]"},
		{"-(a * 2)", "", "a", "-2"},
		{"nosuch(a)", "", "a", "error"},
		{"c", "error", "error", "error"},
	} {
		e, err := ParseExpr(c.expr)
		if err != nil {
			t.Fatal(err)
		}
		text := func(names []string, err error) string {
			if err != nil {
				return "error"
			}
			return strings.Join(names, ",")
		}
		got := [3]string{text(ad.ExternalReferences(e, true)), text(ad.InternalReferences(e)), "error"}
		if flat, err := ad.Flatten(e, Env{}); err == nil {
			got[2] = flat.String()
		}
		if diff := cmp.Diff([3]string{c.external, c.internal, c.flat}, got); diff != "" {
			t.Errorf("%s: %s", c.expr, diff)
		}
	}
}
