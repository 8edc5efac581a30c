package classads

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func names(a *Ad) []string {
	out := []string{}
	for name := range a.All() {
		out = append(out, name)
	}
	return out
}

// TestFormatSorted: upper case comes before lower case, and nested ads have HTCondor's
// own order.
func TestFormatSorted(t *testing.T) {
	a := NewAd()
	for name, text := range map[string]string{"b": "{ [ second = 1; One = 2 ], 3 }", "B1": "1", "Ab": `"x"`, "Aa": "[ Zz = 1; b = [ dd = 1; c = 2 ] ]"} {
		if err := a.SetExpr(name, text); err != nil {
			t.Fatal(err)
		}
	}
	want := "Aa = [ b = [ c = 2; dd = 1 ]; Zz = 1 ]\nAb = \"x\"\nB1 = 1\nb = { [ One = 2; second = 1 ],3 }\n"
	if diff := cmp.Diff(want, a.FormatSorted()); diff != "" {
		t.Error(diff)
	}
}

func TestAdKeepsOrderAndSpelling(t *testing.T) {
	a := NewAd()
	a.SetInt("First", 1)
	a.SetString("second", "2")
	a.SetBool("Third", true)
	a.SetReal("FIRST", 1.5) // replaces, keeps place and spelling
	if diff := cmp.Diff("First = 1.5\nsecond = \"2\"\nThird = true\n", a.FormatOld()); diff != "" {
		t.Error(diff)
	}
	if !a.Delete("SECOND") || a.Delete("second") {
		t.Error("Delete must find the name in any case, and only once")
	}
	if diff := cmp.Diff([]string{"First", "Third"}, names(a)); diff != "" {
		t.Error(diff)
	}
	if a.Has("second") || !a.Has("third") || a.Len() != 2 {
		t.Errorf("Has or Len is wrong: %v", a)
	}
	if e, ok := a.Lookup("FiRsT"); !ok || e.OldString() != "1.5" {
		t.Errorf("Lookup: %v, %v", e, ok)
	}
}

func TestAdCopies(t *testing.T) {
	inner := NewAd()
	inner.SetInt("x", 1)
	a := NewAd()
	a.SetAd("inner", inner)
	b := a.Clone()
	inner.SetInt("x", 2) // not part of a
	b.SetInt("more", 3)  // not part of a
	got, err := a.GetAd("inner")
	if err != nil {
		t.Fatal(err)
	}
	got.SetInt("x", 4) // a copy
	if diff := cmp.Diff("[ inner = [ x = 1 ] ]", a.FormatNew()); diff != "" {
		t.Error(diff)
	}
	a.Update(b)
	if diff := cmp.Diff([]string{"inner", "more"}, names(a)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("[ more = 3; inner = [ x = 1 ] ]", a.Sorted().FormatNew()); diff != "" {
		t.Error(diff)
	}
}

// TestAdIndex compares an ad with a map through many changes.
func TestAdIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := NewAd()
	want := map[string]int64{}
	for i := range 20000 {
		name := fmt.Sprintf("Attr%d", r.IntN(300))
		if i%7 == 0 {
			name = strings.ToUpper(name)
		}
		key := strings.ToLower(name)
		switch r.IntN(5) {
		case 0:
			_, had := want[key]
			if a.Delete(name) != had {
				t.Fatalf("Delete(%s): had %v", name, had)
			}
			delete(want, key)
		case 1:
			a.Grow(r.IntN(10))
		default:
			a.SetInt(name, int64(i))
			want[key] = int64(i)
		}
		if a.Len() != len(want) {
			t.Fatalf("%d attributes, want %d", a.Len(), len(want))
		}
	}
	for key, v := range want {
		if got, err := a.GetInt(key); err != nil || got != v {
			t.Fatalf("%s is %d, %v; want %d", key, got, err, v)
		}
	}
}

// TestCollidingNames looks up names that have the same hash, also by one expression
// in ads that have the attribute in other places.
func TestCollidingNames(t *testing.T) {
	const a, b = "costarring", "liquid"
	if hashName(a) != hashName(b) {
		t.Fatal("the names have different hashes now; find others")
	}
	e, err := ParseExpr("{" + a + "," + b + "," + "Liquid}")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"[ costarring = 1; liquid = 2 ]":        "{ 1,2,2 }",
		"[ liquid = 2; costarring = 1 ]":        "{ 1,2,2 }",
		"[ x = 0; LIQUID = 2; Costarring = 1 ]": "{ 1,2,2 }",
		"[ liquid = 2 ]":                        "{ undefined,2,2 }",
		"[ costarring = 1 ]":                    "{ 1,undefined,undefined }",
		"[ x = 0; costarring = 1; y = 2 ]":      "{ 1,undefined,undefined }",
		"[ x = 0 ]":                             "{ undefined,undefined,undefined }",
	} {
		ad, err := ParseNew(text)
		if err != nil {
			t.Fatal(err)
		}
		list, _ := e.Eval(Env{My: ad}).List()
		var parts []string
		for _, v := range list {
			parts = append(parts, v.String())
		}
		if got := "{ " + strings.Join(parts, ",") + " }"; got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestRealAds reads ads that HTCondor printed and prints them in the same way.
func TestRealAds(t *testing.T) {
	files, err := filepath.Glob("../testdata/classads/*.ad")
	if err != nil || len(files) == 0 {
		t.Fatalf("no ads: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".ad")
		t.Run(name, func(t *testing.T) {
			text := realAd(t, name)
			a, err := ParseOld(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text, a.FormatOld()); diff != "" {
				t.Errorf("old syntax: %s", diff)
			}
			b, err := ParseNew(a.FormatNew())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text, b.FormatOld()); diff != "" {
				t.Errorf("through the new syntax: %s", diff)
			}
			for attr := range a.All() {
				if v := a.Eval(attr, Env{Target: a.Clone()}); v.Kind() == Error {
					t.Errorf("%s is an error: %s", attr, v.Reason())
				}
			}
		})
	}
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	job, err := ParseOld(realAd(t, "job"))
	if err != nil {
		t.Fatal(err)
	}
	machine, err := ParseOld(realAd(t, "machine"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := ParseExpr(`regexp("^slot", TARGET.Name) && MY.Requirements =!= undefined && size(split(TARGET.StarterAbilityList)) > 3`)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if b, _ := e.Eval(Env{My: job, Target: machine}).Bool(); !b {
					t.Error("not true")
				}
				if v := job.Eval("Requirements", Env{Target: machine}); v.Kind() != Bool {
					t.Errorf("Requirements is %v", v)
				}
				_ = machine.FormatOld()
			}
		})
	}
	wg.Wait()
}
