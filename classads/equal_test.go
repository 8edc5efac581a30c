package classads

import (
	"math"
	"testing"
)

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`a + B * 2`, `A+b*2 // comment`, true},
		{`a + b`, `b + a`, false},
		{`a + b`, `a - b`, false},
		{`a`, `(a)`, false},
		{`a`, `.a`, false},
		{`a`, `b.a`, false},
		{`B.a`, `b.A`, true},
		{`c.a`, `b.a`, false},
		{`a =?= b`, `a is b`, true},
		{`a =?= b`, `a == b`, false},
		{`1`, `1.0`, false},
		{`1`, `2`, false},
		{`0.0`, `-0.0`, false},
		{`1.5`, `15e-1`, true},
		{`"x"`, `"\170"`, true},
		{`"x"`, `"X"`, false},
		{`true`, `TRUE`, true},
		{`true`, `1`, false},
		{`true`, `false`, false},
		{`undefined`, `error`, false},
		{`error`, `error`, true},
		{`-5`, `- 5`, false},
		{`strCat(a)`, `STRCAT(a)`, true},
		{`strcat(a)`, `strcat(a,a)`, false},
		{`strcat(a)`, `substr(a)`, false},
		{`strcat(a)`, `strcat`, false},
		{`unknown(a)`, `Unknown(a)`, true},
		{`{ 1,a }`, `{1,A}`, true},
		{`{ 1,a }`, `{a,1}`, false},
		{`{ 1 }`, `{ 1,1 }`, false},
		{`[ a = 1; b = x ]`, `[ B = X; A = 1 ]`, true},
		{`[ a = 1; b = 2 ]`, `[ a = 1; c = 2 ]`, false},
		{`[ a = 1 ]`, `[ a = 1; b = 2 ]`, false},
		{`a ? b : c`, `a ? b : d`, false},
		{`a ?: b`, `a ? a : b`, false},
		{`absTime("2024-01-01T00:00:00Z")`, `absTime("2024-01-01T00:00:00+00:00")`, true},
		{`absTime("2024-01-01T00:00:00Z")`, `absTime("2024-01-01T01:00:00+01:00")`, false},
		{`relTime("1:00")`, `relTime("60")`, true},
		{`relTime("1:00")`, `relTime("61")`, false},
		{`relTime("60")`, `60.0`, false},
	} {
		a, err := ParseExpr(c.a)
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseExpr(c.b)
		if err != nil {
			t.Fatal(err)
		}
		if a.Equal(b) != c.same || b.Equal(a) != c.same {
			t.Errorf("%s and %s: %t and %t, want %t", c.a, c.b, a.Equal(b), b.Equal(a), c.same)
		}
		if !a.Equal(a) {
			t.Errorf("%s is not equal to itself", c.a)
		}
	}
	if nan := math.NaN(); !RealExpr(nan).Equal(RealExpr(math.Copysign(nan, -1))) {
		t.Error("NaN is not NaN")
	}
	if !Literal(ErrorValue("one")).Equal(Literal(ErrorValue("another"))) {
		t.Error("the reason of an error counts")
	}
}

func TestEqualAds(t *testing.T) {
	job, err := ParseOld(realAd(t, "job"))
	if err != nil {
		t.Fatal(err)
	}
	if !job.Equal(job.Sorted()) || !job.Sorted().Equal(job) {
		t.Error("the order of attributes counts")
	}
	for name := range job.All() {
		less := job.Clone()
		less.Delete(name)
		other := job.Clone()
		other.SetString(name, "another")
		for _, different := range []*Ad{less, other} {
			if job.Equal(different) || different.Equal(job) {
				t.Errorf("an ad equals one with another %s", name)
			}
		}
	}
	var none *Ad
	if none.Equal(NewAd()) || NewAd().Equal(none) || !none.Equal(nil) {
		t.Error("no ad equals an empty one, or not itself")
	}
}

// TestZeroExpr has everything treat the zero value, and no expression at all, as undefined.
func TestZeroExpr(t *testing.T) {
	for _, e := range []*Expr{{}, nil} {
		ad := NewAd()
		ad.Insert("A", e)
		rest, err := ad.Flatten(e, Env{})
		if err != nil {
			t.Fatal(err)
		}
		for what, got := range map[string]string{
			"String": e.String(), "OldString": e.OldString(), "Pretty": e.Pretty(), "Eval": e.Eval(Env{My: ad}).String(),
			"Flatten": rest.String(), "Insert": ad.Eval("A", Env{}).String(), "line": string(AppendOldLine(nil, "A", e))[len("A = "):],
		} {
			if got != "undefined" {
				t.Errorf("%s: %q", what, got)
			}
		}
		if v, ok := e.Literal(); !ok || v.Kind() != Undefined || !e.Equal(Literal(Value{})) {
			t.Error("not the literal undefined")
		}
	}
}
