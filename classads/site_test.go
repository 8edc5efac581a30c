package classads

import (
	"fmt"
	"testing"
)

// TestSite: what the surroundings add counts wherever the ad is evaluated, in copies of it too.
func TestSite(t *testing.T) {
	site := &Site{UserMap: func(name, user string, _ *int) (string, bool, error) { return name + ":" + user, true, nil }}
	ad, err := ParseOld(`Groups = userMap("m", Owner)` + "\n" + `Owner = "alice"` + "\nInner = [ x = userMap(\"m\", Owner) ]\nList = { userMap(\"m\", Owner) }")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ad.GetString("Groups"); err == nil {
		t.Errorf("without: %q", got)
	}
	ad.Use(site)
	const want = "m:alice"
	expr := func(text string) *Expr {
		e, err := ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	elements, _ := ad.Eval("List", Env{}).Exprs()
	other := NewAd()
	for what, got := range map[string]string{
		"getter":       ad.StringOr("Groups", ""),
		"copy":         ad.Clone().StringOr("Groups", ""),
		"expression":   str(expr("Groups").Eval(Env{My: ad})),
		"as target":    str(expr("TARGET.Groups").Eval(Env{My: other, Target: ad})),
		"target alone": str(expr("TARGET.Groups").Eval(Env{Target: ad})),
		"nested":       str(expr("Inner.x").Eval(Env{My: ad})),
		"element":      str(elements[0].Eval(Env{My: ad})),
		"of the call":  str(expr(`userMap("m", "alice")`).Eval(Env{Site: site})),
		"of the call before the ad's": str(expr(`Groups`).Eval(Env{My: ad, Site: &Site{
			UserMap: func(string, string, *int) (string, bool, error) { return want, true, nil },
		}})),
	} {
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
}

// TestUserHomeIsBounded: each question reads a file, so one evaluation may not ask as often as it likes.
func TestUserHomeIsBounded(t *testing.T) {
	asked := 0
	ad := NewAd()
	ad.Use(&Site{UserHome: func(string) (string, bool) { asked++; return "/h", true }})
	if err := ad.SetExpr("A0", `userHome("x") == "/h"`); err != nil {
		t.Fatal(err)
	}
	if ok, err := ad.GetBool("A0"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	for i := range 13 {
		if err := ad.SetExpr(fmt.Sprintf("A%d", i+1), fmt.Sprintf("A%d && A%d", i, i)); err != nil {
			t.Fatal(err)
		}
	}
	if v := ad.Eval("A13", Env{}); v.kind != Error || asked > 1001 {
		t.Errorf("%d questions: %v", asked, v.kind)
	}
}

func str(v Value) string {
	s, _ := v.Str()
	return s
}

// TestStrict: a plain name means nothing in the other ad.
func TestStrict(t *testing.T) {
	my, target := NewAd(), NewAd()
	my.SetInt("a", 1)
	target.SetInt("b", 2)
	for text, want := range map[string][2]string{ // as usual, strictly
		"a": {"1", "1"}, "b": {"2", "undefined"}, "TARGET.b": {"2", "2"}, "MY.a": {"1", "1"}, "MY.b": {"undefined", "undefined"}, "a + b": {"3", "undefined"},
		`evalInEachContext(b, { [ x = 1 ] })`: {"{ 2 }", "{ undefined }"},
	} {
		for i, strict := range []bool{false, true} {
			e, err := ParseExpr(text)
			if err != nil {
				t.Fatal(err)
			}
			got := string(appendValue(nil, e.Eval(Env{My: my, Target: target, Site: &Site{Strict: strict}}), printer{}))
			if got != want[i] {
				t.Errorf("%s, strict %t: %s, want %s", text, strict, got, want[i])
			}
		}
	}
}
