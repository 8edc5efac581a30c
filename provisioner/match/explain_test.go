package match

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
)

// The clauses that do not hold are named, with what they look at, on both sides.
func TestExplain(t *testing.T) {
	job := ad(t, `Requirements = (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus && MY.Wants) && (TARGET.Site == "x" || TARGET.Site == "y") && TARGET.A[5]
Wants = TARGET.HasNFS && true
RequestMemory = 9000
RequestCpus = 1
Project = "banned"`)
	slot := ad(t, slot+"RealStart = START && time() > 0\n")
	slot.Insert("Requirements", mustParse(t, "RealStart && WithinResourceLimits && 1"))
	if err := slot.SetExpr("WithinResourceLimits", "TARGET.RequestDisk <= MY.Disk"); err != nil {
		t.Fatal(err)
	}
	slot.SetInt("A", 7)
	got := Explain(job, Slot{ID: "plain/one", Ad: slot}, nil)
	want := Explanation{
		Slot: "plain/one", Result: Result{Why: whyMine},
		Job: []Clause{
			{Text: "TARGET.Memory >= RequestMemory", Value: "false", Uses: []string{"TARGET.Memory = 8192", "RequestMemory = 9000"}},
			{Text: "TARGET.HasNFS", Value: "undefined", Uses: []string{"TARGET.HasNFS = undefined"}},
			{Text: `TARGET.Site == "x" || TARGET.Site == "y"`, Value: "undefined", Uses: []string{"TARGET.Site = undefined"}},
			{Text: "TARGET.A[5]", Value: got.Job[len(got.Job)-1].Value, Uses: []string{"TARGET.A = 7"}},
		},
		Theirs: []Clause{
			{Text: `TARGET.Project =!= "banned"`, Value: "false", Uses: []string{`TARGET.Project = "banned"`}},
			{Text: "TARGET.RequestDisk <= MY.Disk", Value: "undefined", Uses: []string{"TARGET.RequestDisk = undefined", "MY.Disk = 4000000"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if !strings.HasPrefix(want.Job[3].Value, "error") {
		t.Errorf("an error is called %q", want.Job[3].Value)
	}
	match := Explain(ad(t, "Requirements = true\nRequestDisk = 1"), Slot{ID: "s", Ad: slot}, nil)
	if !match.Matches || match.Job != nil || match.Theirs != nil {
		t.Errorf("a match is explained by %+v", match)
	}
	if none := Explain(ad(t, "X = 1"), Slot{ID: "s", Ad: slot}, nil); len(none.Job) != 1 || none.Job[0].Value != "undefined" {
		t.Errorf("a job without Requirements: %+v", none)
	}
}

func mustParse(t *testing.T, text string) *classads.Expr {
	t.Helper()
	e, err := classads.ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Expressions that are huge, or refer to themselves, are explained within bounds.
func TestExplanationsAreBounded(t *testing.T) {
	many := "Requirements = false"
	for i := range 300 {
		many += fmt.Sprintf(" && TARGET.A%d", i)
	}
	long := "Requirements = TARGET.X == \"" + strings.Repeat("x", 5000) + "\""
	circle := "Requirements = A && B\nA = B && A\nB = A && B && TARGET.C"
	for name, text := range map[string]string{"many": many, "long": long, "circle": circle} {
		got := Explain(ad(t, text), Slot{ID: "s", Ad: ad(t, slot)}, nil)
		if got.Matches || len(got.Job) == 0 || len(got.Job) > maxClauses {
			t.Errorf("%s: %d clauses", name, len(got.Job))
		}
		for _, c := range got.Job {
			if len(c.Text) > maxText+10 || len(c.Uses) > maxUses {
				t.Errorf("%s: a clause is %+v", name, c)
			}
		}
	}
}

func FuzzExplain(f *testing.F) {
	f.Add("Requirements = A && (TARGET.Cpus > 5 || MY.B)\nA = B && A\nB = 5 > [x = 1].x")
	f.Fuzz(func(t *testing.T, text string) {
		job, err := classads.Parser{MaxText: 4096}.Old(text)
		if err != nil {
			return
		}
		got := Explain(job, Slot{ID: "s", Ad: ad(t, slot)}, nil)
		if !got.Matches && len(got.Job)+len(got.Theirs) == 0 {
			t.Error("nothing explains why they do not match")
		}
	})
}
