package classads

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hostile are endless texts, cut to a given length.
var hostile = map[string]func(n int) string{
	"parentheses":      func(n int) string { return strings.Repeat("(", n) },
	"closed":           func(n int) string { return strings.Repeat("(", n/2) + strings.Repeat(")", n/2) },
	"lists":            func(n int) string { return strings.Repeat("{", n) },
	"ads":              func(n int) string { return strings.Repeat("[a=", n/3) },
	"unary":            func(n int) string { return strings.Repeat("!", n) + "a" },
	"minus":            func(n int) string { return strings.Repeat("-", n) + "1" },
	"sum":              func(n int) string { return strings.Repeat("1+", n/2) + "1" },
	"precedences":      func(n int) string { return strings.Repeat("1+2*a<b&&", n/9) + "1" },
	"selection":        func(n int) string { return "a" + strings.Repeat(".a", n/2) },
	"subscript":        func(n int) string { return "a" + strings.Repeat("[0]", n/3) },
	"calls":            func(n int) string { return strings.Repeat("f(", n/2) },
	"conditional":      func(n int) string { return strings.Repeat("a?", n/2) },
	"conditional tail": func(n int) string { return strings.Repeat("a?b:", n/4) + "c" },
	"elvis":            func(n int) string { return strings.Repeat("a?:", n/3) + "c" },
	"string":           func(n int) string { return `"` + strings.Repeat("x", n) },
	"escapes":          func(n int) string { return `"` + strings.Repeat(`\"`, n/2) },
	"adjacent strings": func(n int) string { return strings.Repeat(`"x"`, n/3) },
	"long list":        func(n int) string { return "{" + strings.Repeat("1,", n/2) },
	"long ad":          func(n int) string { return "[" + strings.Repeat("a=1;", n/4) },
	"different names": func(n int) string {
		var b strings.Builder
		b.WriteByte('[')
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "a%d=1;", i)
		}
		return b.String()[:n]
	},
	"lines": func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "1\na%d=", i)
		}
		return b.String()[:n]
	},
	"comment": func(n int) string { return strings.Repeat("/**/", n/4) },
	"spaces":  func(n int) string { return strings.Repeat(" ", n) },
	"digits":  func(n int) string { return strings.Repeat("9", n) },
	"zeros":   func(n int) string { return "0." + strings.Repeat("0", n) + "1" },
	"name":    func(n int) string { return strings.Repeat("a", n) },
	"NUL":     func(n int) string { return strings.Repeat("\x00", n) },
}

// TestHostileText bounds the time that text without end takes, below and above
// the bound of the text's length.
// patience is what a bounded effort may take on a machine that does much else;
// alone it is well under a second, and without its bound for ever.
const patience = 20 * time.Second

func TestHostileText(t *testing.T) {
	const tenMegabytes = 10 << 20
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{DefaultMaxText - 16, tenMegabytes} {
				s := text(size)
				start := time.Now()
				e, errNew := ParseExpr(s)
				_, errOld := ParseOldExpr(s)
				_, errAd := ParseOld("a = " + s)
				if took := time.Since(start) / 3; took > patience {
					t.Errorf("%d bytes take %v", size, took)
				}
				if size > DefaultMaxText && (errNew == nil || errOld == nil || errAd == nil) {
					t.Errorf("%d bytes are accepted: %v, %v, %v", size, errNew, errOld, errAd)
				}
				if errNew != nil && len(errNew.Error()) > 300 {
					t.Errorf("an error message of %d bytes", len(errNew.Error()))
				}
				if errNew == nil {
					start := time.Now()
					e.Eval(Env{})
					_ = e.String()
					if took := time.Since(start); took > patience {
						t.Errorf("evaluating and printing %d bytes takes %v", size, took)
					}
				}
			}
		})
	}
}

// BenchmarkHostileText is how long text without end takes, of the greatest length
// that is looked at: to read it, and if that works to evaluate and print it.
func BenchmarkHostileText(b *testing.B) {
	for name, text := range hostile {
		s := text(DefaultMaxText - 16)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if e, err := ParseExpr(s); err == nil {
					e.Eval(Env{})
					_ = e.String()
				}
				_, _ = ParseOldExpr(s)
				_, _ = ParseOld("a = " + s)
			}
		})
	}
}

func TestParserBounds(t *testing.T) {
	for n, want := range map[int]bool{164: true, 165: true, 166: false} { // as HTCondor has it
		if _, err := ParseExpr(strings.Repeat("(", n) + "1" + strings.Repeat(")", n)); (err == nil) != want {
			t.Errorf("%d pairs of parentheses: %v", n, err)
		}
	}
	p := Parser{MaxText: 100, MaxNodes: 10, MaxNesting: 20, MaxHeight: 5}
	for _, c := range []struct{ name, text, want string }{
		{"text", strings.Repeat(" ", 100) + "1", "longer than the 100 allowed"},
		{"nodes", "{1,2,3,4,5,6,7,8,9,10,11}", "more than 10 nodes"},
		{"nesting", strings.Repeat("(", 30), "more than 20 levels"},
		{"height", "1+1+1+1+1+1", "higher than 5"},
		{"fits", "1+1*(2+3)", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := p.Expr(c.text)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			var syntax *SyntaxError
			if c.name == "nesting" && !errors.As(err, &syntax) {
				t.Errorf("%v is no *SyntaxError", err)
			}
		})
	}
}

// TestHostileEvaluation limits the time and memory of evaluations that would take
// for ever.
func TestHostileEvaluation(t *testing.T) {
	doubling := func(join func(name string) string, last string) *Ad {
		ad := NewAd()
		for i := range 60 {
			if err := ad.SetExpr(fmt.Sprintf("a%d", i), join(fmt.Sprintf("a%d", i+1))); err != nil {
				t.Fatal(err)
			}
		}
		if err := ad.SetExpr("a60", last); err != nil {
			t.Fatal(err)
		}
		return ad
	}
	twice := func(s, between string) string { return s + between + s }
	for _, c := range []struct {
		name string
		ad   *Ad
		want string
	}{
		{"sums", doubling(func(n string) string { return twice(n, "+") }, "1"), "too many steps"},
		{"strings", doubling(func(n string) string { return "strcat(" + twice(n, ",") + ")" }, `"x"`), "too many"},
		{"lists", doubling(func(n string) string { return "sum({" + twice(n, ",") + "})" }, "1"), "too many steps"},
		{"eval", doubling(func(n string) string { return "eval(strcat(" + twice(n, ",") + "))" }, "1"), ""},
		{"split", doubling(func(n string) string { return "join(split(strcat(" + twice(n, ",") + `),"")` + ")" }, `"x y"`), "too many"},
		{"pattern", doubling(func(string) string {
			return `regexp("(x+x+)+y",strcat("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","y")[0] ?: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxz")`
		}, "1"), ""},
		{"depth", doubling(func(n string) string { return strings.Repeat("(", 100) + n + strings.Repeat(")", 100) }, "1"), "too deep"},
		{"subscripts", doubling(func(string) string { return `MY["a0"]` }, "1"), ""},
		{"contexts", doubling(func(n string) string { return "evalInEachContext(" + n + ",{" + strings.Repeat("[],", 100) + "[]})" }, "1"), "too many"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			v := c.ad.Eval("a0", Env{})
			if took := time.Since(start); took > patience {
				t.Errorf("takes %v", took)
			}
			if c.want != "" && (v.Kind() != Error || !strings.Contains(v.Reason(), c.want)) {
				t.Errorf("%v, reason %q, want an error with %q", v, v.Reason(), c.want)
			}
		})
	}
}

func TestEvaluationLimits(t *testing.T) {
	e, err := ParseExpr(`strcat("12345","67890") == string(1+2+3)`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limits Limits
		want   string
	}{
		{Limits{}, ""},
		{Limits{Depth: 1}, "nests too deep"},
		{Limits{Steps: 8}, "too many steps"},
		{Limits{Bytes: 9}, "too many bytes"},
	} {
		v := e.Eval(Env{Limits: c.limits})
		if c.want == "" {
			if v.Kind() != Bool {
				t.Errorf("%v: %v (%s)", c.limits, v, v.Reason())
			}
		} else if v.Kind() != Error || !strings.Contains(v.Reason(), c.want) {
			t.Errorf("%v: %v, reason %q, want %q", c.limits, v, v.Reason(), c.want)
		}
	}
}

// TestReplacingInLongTexts: a text is looked through once for what a pattern needs, and not for each match.
func TestReplacingInLongTexts(t *testing.T) {
	for _, p := range []string{",", "b?,", "(?:a,)"} {
		text := strings.Repeat("a,", 40_000) + strings.Repeat("x", 40_000)
		expr := `size(replaceAll("` + p + `", "` + text + `", ";"))`
		e, err := ParseExpr(expr)
		if err != nil {
			t.Fatal(err)
		}
		want := int64(len(text))
		if p == "(?:a,)" {
			want -= 40_000
		}
		if got, ok := e.Eval(Env{}).Int(); !ok || got != want {
			t.Errorf("%s: %v, want %d", p, e.Eval(Env{}), want)
		}
	}
}

// TestSearchesEnd: an evaluation whose steps for searches are used up looks through no more text.
func TestSearchesEnd(t *testing.T) {
	text := strings.Repeat("x", 1<<20)
	for _, p := range []string{"z", "(?s).*z", "x*y", ".*\\nz"} {
		ad := NewAd()
		ad.SetString("S", text)
		e, err := ParseExpr(`regexpMember("` + p + `", {` + strings.Repeat("S,", 2000) + `S})`)
		if err != nil {
			t.Fatal(err)
		}
		ev := new(evaluator)
		e.tree().eval(ev, ev.start(&Env{My: ad}))
		if ev.search < -len(text) {
			t.Errorf("%s: %d steps beyond those allowed", p, -ev.search)
		}
	}
}

// TestCompiledPatternsCount: patterns that are much larger than their text count as memory, and are not kept.
func TestCompiledPatternsCount(t *testing.T) {
	var b strings.Builder
	for i := range 60 {
		b.WriteString(`regexp("(?:ab){` + strconv.Itoa(65000+i) + `}", "x") || `)
	}
	e, err := ParseExpr(b.String() + "false")
	if err != nil {
		t.Fatal(err)
	}
	if v := e.Eval(Env{}); v.Kind() != Error {
		t.Errorf("%v, want an error", v)
	}
}

// TestElementsWhoseSearchFails: as in HTCondor, an element whose search takes too many steps does not match. Where that is not known
// to be HTCondor's answer, it is an error.
func TestElementsWhoseSearchFails(t *testing.T) {
	endless := strings.Repeat("x", 40) + "y" // for the pattern (x+x+)+y[a-z]
	for _, tt := range []struct {
		elements []string
		earlier  bool // another search uses the steps up
		want     string
	}{
		{[]string{endless}, false, "false"},
		{[]string{"b", endless}, false, "false"},
		{[]string{"xxyz", endless}, false, "true"},
		{[]string{endless, "xxyz"}, false, "error"},
		{[]string{endless, "b"}, false, "error"},
		{[]string{endless}, true, "error"},
		{[]string{"b"}, true, "error"},
	} {
		quoted := make([]string, len(tt.elements))
		for i, s := range tt.elements {
			quoted[i] = Quote(s)
		}
		for _, expr := range []string{
			`regexpMember("(x+x+)+y[a-z]", {` + strings.Join(quoted, ",") + `})`,
			`stringList_regexpMember("(x+x+)+y[a-z]", ` + Quote(strings.Join(tt.elements, ",")) + `)`,
		} {
			if tt.earlier {
				expr = `ifThenElse(regexp("(x+x+)+y[a-z]", "` + endless + `") isnt true, ` + expr + `, 0)`
			}
			e, err := ParseExpr(expr)
			if err != nil {
				t.Fatal(err)
			}
			if got := e.Eval(Env{}).String(); got != tt.want {
				t.Errorf("%v, steps used up %v: %s is %s, want %s", tt.elements, tt.earlier, expr, got, tt.want)
			}
		}
	}
}
