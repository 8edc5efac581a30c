package classads

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// describe returns what the outermost part of an expression is, and fails unless
// exactly one of the methods recognises it.
func describe(t *testing.T, e *Expr) string {
	t.Helper()
	var answers []string
	if v, ok := e.Literal(); ok {
		answers = append(answers, "literal "+v.String())
	}
	if r, ok := e.Reference(); ok {
		answers = append(answers, fmt.Sprintf("reference %s %q %t", r, r.Scope(), r.Absolute))
	}
	if op, operands, ok := e.Operation(); ok {
		answers = append(answers, fmt.Sprintf("operation %s of %d", op, len(operands)))
	}
	if name, args, ok := e.Call(); ok {
		answers = append(answers, fmt.Sprintf("call of %s with %d", name, len(args)))
	}
	if items, ok := e.List(); ok {
		answers = append(answers, fmt.Sprintf("list of %d", len(items)))
	}
	if ad, ok := e.Ad(); ok {
		answers = append(answers, fmt.Sprintf("ad of %d", ad.Len()))
	}
	if len(answers) != 1 {
		t.Errorf("%s is %q", e, answers)
	}
	return strings.Join(answers, ", ")
}

func TestWalk(t *testing.T) {
	e, err := ParseExpr(`(TARGET.a[1] =?= -x) ? strcat(.y, relTime("5")) : { [ n = m; o = a.b.c ], 'odd name' ?: error }`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	e.Walk(func(part *Expr) bool {
		got = append(got, describe(t, part))
		return true
	})
	want := []string{
		"operation ? of 3", "operation () of 1", "operation =?= of 2", "operation [] of 2", `reference TARGET.a "TARGET" false`, `reference TARGET "" false`, "literal 1",
		"operation - of 1", `reference x "" false`, "call of strcat with 2", `reference .y "" true`, `literal relTime("05")`,
		"list of 2", "ad of 2", `reference m "" false`, `reference a.b.c "" false`, `reference a.b "a" false`, `reference a "" false`,
		"operation ?: of 2", `reference 'odd name' "" false`, "literal error",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = nil
	e.Walk(func(part *Expr) bool {
		got = append(got, describe(t, part))
		op, _, _ := part.Operation()
		return op == "?"
	})
	if diff := cmp.Diff([]string{"operation ? of 3", "operation () of 1", "call of strcat with 2", "list of 2"}, got); diff != "" {
		t.Errorf("without descending: %s", diff)
	}
}

func TestReferencesOfExpr(t *testing.T) {
	for text, want := range map[string][]string{
		`TARGET.Memory >= MY.RequestMemory && Cpus > 0`: {"TARGET.Memory", "MY.RequestMemory", "Cpus"},
		`a.b.c + a`:                   {"a.b.c", "a.b", "a", "a"},
		`[ x = parent.y ].x`:          {"[ x = 'parent'.y ].x", "'parent'.y"},
		`.TARGET.x`:                   {".TARGET.x", ".TARGET"},
		`CurrentTime.x`:               {"CurrentTime.x", "CurrentTime"},
		`my`:                          {"my"},
		`f(1, "x", { undefined })`:    {},
		`eval("a")`:                   {},
		`my.target.x`:                 {"my.target.x", "my.target"},
		`debug(x) ?: x[y].z ? 1 : my`: {"x", "x[y].z", "x", "y", "my"},
	} {
		e, err := ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for r := range e.References() {
			got = append(got, r.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		for most := range len(want) {
			n := 0
			for range e.References() {
				if n++; n > most {
					break
				}
			}
			if n != most+1 {
				t.Errorf("%s: a loop that ended after %d went on to %d", text, most+1, n)
			}
		}
	}
}

// TestWalkFindsEverything compares the names that a walk finds with those in the
// text.
func TestWalkFindsEverything(t *testing.T) {
	for _, kind := range []string{"machine", "job", "startd", "scheduler"} {
		ad, err := ParseOld(realAd(t, kind))
		if err != nil {
			t.Fatal(err)
		}
		for name, e := range ad.All() {
			var found, lexed []string
			e.Walk(func(part *Expr) bool {
				if r, ok := part.Reference(); ok {
					found = append(found, r.Name)
				}
				if f, _, ok := part.Call(); ok {
					found = append(found, f)
				}
				if nested, ok := part.Ad(); ok {
					for name := range nested.All() {
						found = append(found, name)
					}
				}
				return true
			})
			l := lexer{text: e.String()}
			for err := l.next(); l.tok != tokEnd; err = l.next() {
				if err != nil {
					t.Fatal(err)
				}
				if l.tok == tokName && !(equalFold(l.str, "absTime") || equalFold(l.str, "relTime")) {
					lexed = append(lexed, l.str)
				}
			}
			slices.Sort(found)
			slices.Sort(lexed)
			if diff := cmp.Diff(lexed, found); diff != "" {
				t.Errorf("%s %s: the text has (-), the walk finds (+):\n%s", kind, name, diff)
			}
		}
	}
}
