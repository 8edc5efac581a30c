package pattern

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const enough = 1 << 20

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern string
		flags   Flags
		text    string
		want    []int // nil: no match
	}{
		{`b+`, 0, "abbbc", []int{1, 4}},
		{`b+?`, 0, "abbbc", []int{1, 2}},
		{`(a)|(b)`, 0, "b", []int{0, 1, -1, -1, 0, 1}},
		{`(a)|(b)`, 0, "a", []int{0, 1, 0, 1}},
		{`^b`, 0, "a\nb", nil},
		{`^b`, MultiLine, "a\nb", []int{2, 3}},
		{`a$`, 0, "a\n", []int{0, 1}},
		{`a\z`, 0, "a\n", nil},
		{`a.b`, 0, "a\nb", nil},
		{`a.b`, DotAll, "a\nb", []int{0, 3}},
		{`AbC`, IgnoreCase, "xaBc", []int{1, 4}},
		{` a b # c`, Extended, "ab", []int{0, 2}},
		{`(?i)a(?-i)b`, 0, "Ab", []int{0, 2}},
		{`(?i:a)b`, 0, "AB", nil},
		{`(\w+) \1`, 0, "the the", []int{0, 7, 0, 3}},
		{`(?<x>a)\k<x>\g{-1}(?P=x)`, 0, "aaaa", []int{0, 4, 0, 1}},
		{`(?<=a)b`, 0, "bab", []int{2, 3}},
		{`(?<!a)b`, 0, "abb", []int{2, 3}},
		{`(?<=a|bc)d`, 0, "bcd", []int{2, 3}},
		{`(?<=(a|))b`, 0, "ab", []int{1, 2, 0, 1}},
		{`(?<=(|a))b`, 0, "ab", []int{1, 2, 0, 1}},
		{`(?<=()|(a))b`, 0, "ab", []int{1, 2, 1, 1}},
		{`(ab)(?<=\1)c`, 0, "abc", []int{0, 3, 0, 2}},
		{`((?=a+)*)b(?<=\1b)`, 0, "b", []int{0, 1, 0, 0}},
		{`a(?=b)`, 0, "acab", []int{2, 3}},
		{`a(?!b)`, 0, "abac", []int{2, 3}},
		{`(?>a+)ab`, 0, "aaab", nil},
		{`a++b`, 0, "aaab", []int{0, 4}},
		{`(?:ab){2,3}`, 0, "abababab", []int{0, 6}},
		{`(?:ab){2,3}?`, 0, "abababab", []int{0, 4}},
		{`(a*)*`, 0, "aab", []int{0, 2, 2, 2}},
		{`(?:(a)|b)*`, 0, "ab", []int{0, 2, 0, 1}},
		{`[[:digit:]x-z\s]+`, 0, "a1 zq", []int{1, 4}},
		{`[^a-c]`, 0, "abcd", []int{3, 4}},
		{`[]a]+`, 0, "b]a", []int{1, 3}},
		{`\Qa.b\E+`, 0, "a.bbb", []int{0, 5}},
		{`\x41\101\o{101}\cA`, 0, "AAA\x01", []int{0, 4}},
		{`\bfoo\b`, 0, "xfoo foo", []int{5, 8}},
		{`a\Kb`, 0, "ab", []int{1, 2}},
		{`\R`, 0, "a\r\n", []int{1, 3}},
		{`\h\N`, 0, "a\tb", []int{1, 3}},
		{`a\Cb`, 0, "a\nb", []int{0, 3}},
		{`^\X$`, 0, "\r\n", []int{0, 2}},
		{`^\X\n`, 0, "\r\n", nil},
		{`\X\X`, 0, "\n\r\n", []int{0, 3}},
		{`{`, 0, "{", []int{0, 1}},
		{`a{,2}`, 0, "aaa", []int{0, 2}},
		{`a{x}`, 0, "a{x}", []int{0, 4}},
		{``, 0, "", []int{0, 0}},
		{"\xff", 0, "a\xff", []int{1, 2}},
	} {
		p, err := Compile(c.pattern, c.flags)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		budget := enough
		got, err := p.In(c.text, &budget).Match(0, 0, &budget)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s in %q: %v\n%s", c.pattern, c.text, err, diff)
		}
	}
}

func TestOptions(t *testing.T) {
	p, err := Compile("a*", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from int
		o    Options
		want []int
	}{
		{0, 0, []int{0, 0}},
		{0, Anchored | NotEmptyAtStart, nil},
		{0, NotEmptyAtStart, []int{1, 3}},
		{0, NotEmpty, []int{1, 3}},
		{2, Anchored, []int{2, 3}},
	} {
		budget := enough
		got, err := p.In("baac", &budget).Match(c.from, c.o, &budget)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("from %d with %b: %v\n%s", c.from, c.o, err, diff)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ pattern, want string }{
		{`(a`, "missing )"}, {`a)`, "unmatched )"}, {`[a`, "missing ]"}, {`*a`, "follows nothing"}, {`a**`, "follows nothing"}, {`^*`, "follows nothing"},
		{`a{2,1}`, "out of order"}, {`[b-a]`, "out of order"}, {`[a-\d]`, "ends with a class"}, {`[\d-z]`, "begins with a class"}, {`[[:nope:]]`, "unknown POSIX"},
		{`\1`, "no such group"}, {`(a)\2`, "no such group"}, {`\k<x>`, "no group has the name"}, {`(?<x>a)(?<x>b)`, "two groups"}, {`\`, "at the end"}, {`\j`, "unknown escape"},
		{`(?<=a*)b`, "limited length"}, {`(?<=\X)b`, "limited length"}, {`((?<=\1)a)`, "limited length"}, {`(a(?=(?<=\1)))`, "limited length"}, {`(?=\K)`, "in a look-around"}, {`(?<!a\K)`, "in a look-around"}, {`(?R)`, "not supported"}, {`(?(1)a)`, "not supported"}, {`(?|a)`, "not supported"}, {`(*FAIL)`, "not supported"}, {`\p{L}`, "unknown escape"},
		{`(?z)`, "unknown group"}, {`(?#x`, "does not end"}, {`\x{100}`, "up to ff"}, {`a{70000}`, "repetitions"},
		{"(a)" + doubled(60) + `(?<=\61)`, "limited length"},
		{strings.Repeat("(", 300), "nesting"}, {strings.Repeat("a", maxPattern+1), "longer than"}, {`((((a{60}){60}){60}){60}){60}b`, "too large"},
	} {
		_, err := Compile(c.pattern, 0)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 200 {
			t.Errorf("%.40s: %v, want %q", c.pattern, err, c.want)
		}
	}
}

// doubled are groups each of which has the text of the one before twice, beginning with \1.
func doubled(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, `(\%d\%d)`, i, i)
	}
	return b.String()
}

// TestLookBehindsAreMeasuredOnce: those within others, and what references to groups in groups mean.
func TestLookBehindsAreMeasuredOnce(t *testing.T) {
	filler := "(?:" + strings.Repeat("|", 50_000) + ")"
	for name, expr := range map[string]string{
		"nested":            strings.Repeat("(?<=", 240) + filler + strings.Repeat(")", 240),
		"nested, ahead too": strings.Repeat("(?<=(?=", 120) + filler + strings.Repeat("))", 120),
		"groups":            strings.Repeat("(", 240) + filler + strings.Repeat(")", 240) + strings.Repeat(`(?<=\1\240)`, 1000),
		"references":        "(" + filler + ")" + doubled(90) + strings.Repeat(`(?<=\90)`, 1000),
	} {
		start := time.Now()
		if _, err := Compile(expr, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s takes %v", name, took)
		} else {
			t.Log(name, took)
		}
	}
}

// TestBudget limits patterns that would search for ever.
func TestBudget(t *testing.T) {
	text := strings.Repeat("a", 5000) + "!"
	for _, expr := range []string{`(a+)+$`, `(a|aa)+$`, `(a*)*b`, `(.*)(.*)(.*)(.*)x`, `(?:a?){2000}a{2000}b`, `(a+)\1+$`, `(?=(a+)+$)b`} {
		p, err := Compile(expr, 0)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		budget := 2_000_000
		_, err = p.In(text, &budget).Match(0, 0, &budget)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s takes %v", expr, took)
		}
		if err != nil && !errors.Is(err, ErrBudget) {
			t.Errorf("%s: %v", expr, err)
		}
	}
}
