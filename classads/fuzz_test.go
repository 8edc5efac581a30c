package classads

import (
	"strings"
	"testing"
	"time"
)

// seedExpressions are the fuzzers' first inputs.
var seedExpressions = []string{
	`1 + 2 * 3 - -4 / 5 % 6`, `a && b || !c`, `x =?= undefined ? y ?: z : "w"`, `MY.a + TARGET.b.c[0]["d"]`, `{ 1, 2.5e-3, "s\t\"q\"\123", true }`,
	`[ a = 1; 'b c' = { [ d = a ] }; ]`, `strcat("a", 1, {}) == 'quoted name'`, `absTime("2024-02-29T12:34:56+01:00") + relTime("1+02:03:04.5")`,
	`"adjacent" " strings"`, `// comment` + "\n" + `/* another */ 1 >>> 2 << 3`, `.x.y`, `f(a;b,c)`, `-.5`, `real("INF")`, `"back\slash\"`, `a is b isnt c`, `{ [ a = 1 ], [ a = 2 ] }.a`,
	`regexps("(a*)(b)?", s, "\\1-\\2", "gi")`, `evalInEachContext(x > 1, ads)`, `formatTime(at, "%c %-d %_5Y")`, `eval("eval(\"1\")")`, `splitTime(1.5)`, `interval(-100000)`,
}

// stable tells whether printing and reading an expression again must give the
// same text. Times need not: HTCondor's text of them has no fractions beyond
// six digits and no years or days beyond a limit.
func stable(text string) bool {
	lowered := strings.ToLower(text)
	return !strings.Contains(lowered, "time(")
}

func FuzzParse(f *testing.F) {
	for _, s := range seedExpressions {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseExpr(text)
		if err != nil {
			return
		}
		_ = e.Pretty()
		again, err := ParseExpr(text)
		if err != nil || !e.Equal(again) || !again.Equal(e) {
			t.Fatalf("%q is read twice, as %s and %s, %v", text, e, again, err)
		}
		e.Walk(func(part *Expr) bool {
			describe(t, part)
			return true
		})
		settles(t, e.String(), func(text string) (string, error) {
			e, err := ParseExpr(text)
			if err != nil {
				return "", err
			}
			return e.String(), nil
		})
	})
}

// settles fails unless repeated reading and printing of a text comes to a fixed
// result. That may take several rounds: unary minus and a number become one
// literal.
func settles(t *testing.T, text string, again func(string) (string, error)) {
	t.Helper()
	for last := ""; last != text && stable(text); {
		next, err := again(text)
		if err != nil {
			t.Fatalf("%q was printed and cannot be read: %v", text, err)
		}
		if len(next) > len(text) {
			t.Fatalf("%q was printed and became %q", text, next)
		}
		last, text = text, next
	}
}

func FuzzParseOld(f *testing.F) {
	for _, s := range seedExpressions {
		f.Add("A = " + s + "\n# comment\n\nB=" + s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseOld(text)
		if err != nil {
			return
		}
		printed := a.FormatOld()
		if !stable(printed) {
			return
		}
		if _, err := ParseNew(a.FormatNew()); err != nil {
			t.Fatalf("%q in the new syntax is %q: %v", text, a.FormatNew(), err)
		}
		if strings.ContainsAny(printed, `\'`) || strings.Count(printed, "\n") != a.Len() {
			return // the old syntax cannot write every string
		}
		settles(t, printed, func(text string) (string, error) {
			a, err := ParseOld(text)
			if err != nil {
				return "", err
			}
			return a.FormatOld(), nil
		})
	})
}

func FuzzEval(f *testing.F) {
	for _, s := range seedExpressions {
		f.Add(s)
	}
	for name := range signatures {
		f.Add(name + `(a, "b", { 1,s }, at)`)
	}
	my, err := ParseNew(adPairs[0][0])
	if err != nil {
		f.Fatal(err)
	}
	target, err := ParseNew(adPairs[1][1])
	if err != nil {
		f.Fatal(err)
	}
	env := Env{
		My: my, Target: target,
		Now:    func() time.Time { return time.Unix(1700000000, 0).UTC() },
		Random: func() float64 { return 0.5 },
		Limits: Limits{Steps: 20000, Bytes: 1 << 20},
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseExpr(text)
		if err != nil {
			return
		}
		start := time.Now()
		v := e.Eval(env)
		value := v.String()
		if took := time.Since(start); took > patience {
			t.Fatalf("%q takes %v", text, took)
		}
		if items, ok := v.List(); ok && len(items) != v.Len() {
			t.Fatalf("%q: %d elements of %d", text, len(items), v.Len())
		}
		if !stable(e.String()) {
			return
		}
		again, err := ParseExpr(e.String())
		if err != nil {
			t.Fatal(err)
		}
		if w := again.Eval(env); w.Kind() != v.Kind() || v.Kind() < List && w.String() != value {
			t.Fatalf("%q is %s, but printed and read again, %q, it is %s", text, value, e, w)
		}
	})
}
