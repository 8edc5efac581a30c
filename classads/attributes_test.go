package classads

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGetters(t *testing.T) {
	a, err := ParseNew(`[ s = "text"; i = 7; r = -2.75; big = 1e300; b = true; u = undefined; e = 1 / 0; l = { i,"x",missing }; n = [ x = i ]; sum = i + 1; text = strcat(s,"!"); self = self ]`)
	if err != nil {
		t.Fatal(err)
	}
	describe := func(v any, err error) string {
		var typ *TypeError
		switch {
		case err == nil:
			return fmt.Sprint(v)
		case errors.Is(err, ErrAbsent):
			return "absent"
		case errors.Is(err, ErrUndefined):
			return "undefined"
		case errors.As(err, &typ):
			return "is " + typ.Got.String()
		}
		return err.Error()
	}
	got := map[string][5]string{}
	for _, name := range []string{"s", "i", "r", "b", "u", "e", "l", "n", "sum", "text", "missing", "big", "self"} {
		s, errS := a.GetString(name)
		i, errI := a.GetInt(name)
		r, errR := a.GetReal(name)
		b, errB := a.GetBool(name)
		ad, errA := a.GetAd(name)
		_, errL := a.GetList(name)
		nested := describe(ad, errA)
		if errL == nil {
			nested = "list"
		}
		got[name] = [5]string{describe(s, errS), describe(i, errI), describe(r, errR), describe(b, errB), nested}
	}
	want := map[string][5]string{
		"s":       {"text", "is string", "is string", "is string", "is string"},
		"i":       {"is integer", "7", "7", "true", "is integer"},
		"r":       {"is real", "-2", "-2.75", "true", "is real"},
		"b":       {"is boolean", "1", "1", "true", "is boolean"},
		"u":       {"undefined", "undefined", "undefined", "undefined", "undefined"},
		"e":       {"is error", "is error", "is error", "is error", "is error"},
		"l":       {"is list", "is list", "is list", "is list", "list"},
		"n":       {"is ClassAd", "is ClassAd", "is ClassAd", "is ClassAd", "[ x = i ]"},
		"sum":     {"is integer", "8", "8", "true", "is integer"},
		"text":    {"text!", "is string", "is string", "is string", "is string"},
		"missing": {"absent", "absent", "absent", "absent", "absent"},
		"big":     {"is real", "-9223372036854775808", "1e+300", "true", "is real"},
		"self":    {"undefined", "undefined", "undefined", "undefined", "undefined"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	items, err := a.GetList("l")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"7", `"x"`, "undefined"}, []string{items[0].String(), items[1].String(), items[2].String()}); diff != "" {
		t.Errorf("elements: %s", diff)
	}
	_, err = a.GetInt("e")
	if diff := cmp.Diff("attribute e: want integer, evaluation is an error: division by zero", err.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestDefaults(t *testing.T) {
	a := NewAd()
	a.SetString("s", "v")
	a.SetInt("i", 3)
	got := []any{a.StringOr("s", "d"), a.StringOr("i", "d"), a.IntOr("i", 9), a.IntOr("x", 9), a.RealOr("i", 1.5), a.RealOr("s", 1.5), a.BoolOr("i", false), a.BoolOr("s", true)}
	if diff := cmp.Diff([]any{"v", "d", int64(3), int64(9), 3.0, 1.5, true, true}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSetters(t *testing.T) {
	a := NewAd()
	a.SetString("s", "a\"b\\")
	a.SetString("nul", "cut\x00off")
	a.SetReal("r", 3)
	a.SetList("l", IntExpr(1), StringExpr("x"), nil, BoolExpr(false), RealExpr(0.5), AdExpr(NewAd()), ListExpr())
	if err := a.SetExpr("e", `TARGET.x =?= "C:\dir" && y`); err != nil {
		t.Fatal(err)
	}
	a.Insert("none", nil)
	a.Insert("v", Literal(AbsTimeValue(0, 3600)))
	want := `s = "a\"b\"
nul = "cut"
r = 3.0
l = { 1,"x",undefined,false,0.5,[  ],{  } }
e = TARGET.x =?= "C:\dir" && y
none = undefined
v = absTime("1970-01-01T01:00:00+01:00")
`
	if diff := cmp.Diff(want, a.FormatOld()); diff != "" {
		t.Error(diff)
	}
	if err := a.SetExpr("bad", "1 +"); err == nil || a.Has("bad") {
		t.Errorf("SetExpr of a syntax error: %v", err)
	}
}
