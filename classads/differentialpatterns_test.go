//go:build differential

package classads

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// TestPatternsAgainstHTCondor compares regular expressions with PCRE2.
func TestPatternsAgainstHTCondor(t *testing.T) {
	g := patternGenerator{generator{rand.New(rand.NewPCG(*seed, 2))}}
	var queries []query
	for range *count {
		text := g.text()
		p := StringExpr(g.pattern(3)).String()
		options := g.pick("", "", "", "i", "m", "s", "x", "imsx")
		var expr string
		switch g.r.IntN(3) {
		case 0:
			expr = `regexp(` + p + "," + text + `,"` + options + `")`
		case 1:
			expr = `replaceAll(` + p + "," + text + `,"<\\0>","` + options + `")`
		default:
			expr = `regexps(` + p + "," + text + `,"\\1|\\0","` + options + `")`
		}
		queries = append(queries, query{Expr: expr})
	}
	compareAnswers(t, queries)
}

type patternGenerator struct{ generator }

func (g patternGenerator) text() string {
	var b strings.Builder
	for range g.r.IntN(12) {
		b.WriteString(g.pick("a", "b", "A", "B", "c", "1", "9", " ", "_", "\n", "-", ".", "ab", "\t"))
	}
	return StringExpr(b.String()).String()
}

func (g patternGenerator) pattern(depth int) string {
	var b strings.Builder
	for range g.r.IntN(4) {
		b.WriteString(g.item(depth))
	}
	if g.r.IntN(6) == 0 {
		b.WriteString("|" + g.item(depth))
	}
	return b.String()
}

func (g patternGenerator) item(depth int) string {
	item := ""
	switch k := g.r.IntN(14); {
	case k < 5 || depth <= 0:
		item = g.pick("a", "b", "A", "c", "1", ".", `\d`, `\w`, `\s`, `\W`, `\D`, `\S`, " ", `\.`, "-", `\n`, `\x41`, `\141`, `\h`, `\v`, `\R`, `\N`, `\C`, `\X`, "ab", "]", "}", "{", "{,", `\Qa.b\E`, "#")
	case k == 5:
		item = g.pick("^", "$", `\b`, `\B`, `\A`, `\Z`, `\z`, `\G`)
		return item
	case k == 6:
		item = g.pick("[ab]", "[^a]", "[a-c1-9]", `[\d_]`, `[^\w]`, "[]a]", "[^]a]", "[[:alpha:]-]", "[[:^digit:]]", `[\s.]`, "[a-]", `[\]x]`, "[b-a]", `[a-\d]`, "[a", "[[:nope:]]", `[\b]`, "[A-b]", `[\Qa]\E]`, `[\x41-\x43]`)
	case k == 7:
		item = g.pick(`\1`, `\2`, `\g1`, `\g{-1}`, `\g{1}`, `\k<n>`, `(?P=n)`, `\9`, `\12`)
	case k == 8:
		item = g.pick("(?:", "(?>", "(?=", "(?!", "(?i:", "(?s-i:", "(?x: ") + g.pattern(depth-1) + ")"
	case k == 9:
		item = g.pick("(?<=", "(?<!") + g.pick("a", "ab", "a|b", ".", `\d\w`, "(?:a|bc)", "a{2}", "a?", "a*", "^", "(b)", `\X`, `\C`, `\R`, `\Rb?`, `(a)\1`, "(?>ab)", "(?=a)", "(?<=b)a", "(?i)B", "a{0,3}b", `\b`, "(?<x>a|)", `\K`) + ")"
	case k == 10:
		item = g.pick("(?i)", "(?-i)", "(?m)", "(?x)", "(?#note)", "(?s)", "(?U)", "(?^)", "(?xx)", "(?n)")
		return item
	case k == 11:
		item = "(?<n" + strconv.Itoa(g.r.IntN(3)) + ">" + g.pattern(depth-1) + ")"
	default:
		item = "(" + g.pattern(depth-1) + ")"
	}
	if g.r.IntN(3) == 0 {
		item += g.pick("*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{2}", "{1,2}", "{1,}", "{,2}", "{0}", "{2,1}", "{1,3}?", "{1,2}+", "{ 1 }", "**")
	}
	return item
}

// TestLongPatternsAgainstHTCondor compares searches of which PCRE2 makes short work, by where a match can begin and what it needs.
func TestLongPatternsAgainstHTCondor(t *testing.T) {
	sites := strings.Repeat("T2_US_Caltech,T2_US_MIT,", 100)[:2000]
	var queries []query
	for _, text := range []string{strings.Repeat("x", 4500), strings.Repeat("x", 100_000), sites, strings.Repeat("foobar", 50), strings.Repeat("foobarz", 45), sites + "T2_FR_GRIF"} {
		for _, p := range []string{".*foo.*", ".*T2_US_.*T2_FR_.*", ".*foo.*bar.*baz$", ".*?foo", "(.*)foo", "(?s).*foo.*", "(?m)^.*foo", "(x+x+)+y", "(?i)(x+x+)+Y", "(.*)T2_FR.*\\1"} {
			queries = append(queries, query{Expr: "regexp(" + StringExpr(p).String() + "," + StringExpr(text).String() + ")"})
		}
	}
	compareAnswers(t, queries)
}

// TestSearchesAgainstHTCondor compares searches as sites and users write them. Where a search takes one of the two too many steps,
// which are not the same, there is nothing to compare: that must be rare.
func TestSearchesAgainstHTCondor(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(*seed, 6))}
	texts := []string{
		strings.Repeat("T2_US_Caltech,T2_US_MIT,", 10), strings.Repeat("x", 300), strings.Repeat("foobar", 30), strings.Repeat("foo bar baz ", 20), strings.Repeat("a", 200) + "b",
		strings.Repeat("slot1@host.example.org 12\n", 12), strings.Repeat("/usr/bin/python3:/opt/x/bin:", 10), strings.Repeat("key=value;", 30),
	}
	var queries []query
	for range *count / 10 {
		var b strings.Builder
		b.WriteString(g.pick("", "", "", "^", "(?i)", "(?s)", "(?m)", `\b`))
		for range 1 + g.r.IntN(4) {
			b.WriteString(g.pick(".*", ".*", ".+", ".*?", "", "", "(.*)", `\w+`, "[^,]*", `\s*`, `(\w+)`, "(?:.*,)?", ".{0,50}"))
			b.WriteString(g.pick("foo", "bar", "T2_US_", "T2_FR_", "x", "a", "b", "[a-z]", `\w`, `\d`, ",", "z", "host", "example", "=", "python", "/", "(?:foo|bar)", "(a|b)", "[^,]", "MIT", "@", `\.`, ";"))
			b.WriteString(g.pick("", "", "", "", "+", "*", "?", "{2,}"))
		}
		b.WriteString(g.pick("", "", "", "$", ".*", ".*$", `\b`))
		queries = append(queries, query{Expr: "regexps(" + StringExpr(b.String()).String() + "," + StringExpr(texts[g.r.IntN(len(texts))]).String() + `,"\\0")`})
	}
	tooLong := 0
	for i, theirs := range ask(t, queries) {
		mine := ours(t, queries[i])
		switch {
		case mine == theirs:
		case mine.Value == "error" || theirs.Value == "error":
			tooLong++
		default:
			t.Errorf("%s\n   HTCondor %+v\n   ours     %+v", queries[i].Expr, theirs, mine)
		}
	}
	if tooLong > len(queries)/100 {
		t.Errorf("%d of %d searches take too many steps in one of the two", tooLong, len(queries))
	}
	t.Logf("%d searches, %d of them take too many steps in one of the two", len(queries), tooLong)
}

// TestElementsAgainstHTCondor compares lists with an element whose search takes too many steps.
func TestElementsAgainstHTCondor(t *testing.T) {
	endless := strings.Repeat("x", 40) + "y"
	var queries []query
	for _, items := range []string{endless, "xxyz," + endless, "b," + endless, "b,c", ""} {
		queries = append(queries,
			query{Expr: `stringList_regexpMember("(x+x+)+y[a-z]","` + items + `")`},
			query{Expr: `regexpMember("(x+x+)+y[a-z]",split("` + items + `"))`})
	}
	queries = append(queries, query{Expr: `regexp("(x+x+)+y[a-z]","` + endless + `")`})
	compareAnswers(t, queries)
}

// TestNestingAgainstHTCondor: the same expressions nest too deep.
func TestNestingAgainstHTCondor(t *testing.T) {
	var queries []query
	for _, n := range []int{10, 100, 120, 123, 124, 125, 126, 160, 164, 165, 166, 167, 200, 246, 247, 248, 249, 250, 251, 490, 496, 497, 498, 499, 500, 501} {
		for _, one := range [][2]string{{"(", ")"}, {"{", "}"}, {"strcat(", ")"}, {"!", ""}, {"- ", ""}, {"1?:", ""}, {"true?1:", ""}, {"[a=", "]"}, {"x[", "]"}, {"1+(", ")"}} {
			queries = append(queries, query{Expr: strings.Repeat(one[0], n) + "1" + strings.Repeat(one[1], n)})
		}
	}
	compareAnswers(t, queries)
}
