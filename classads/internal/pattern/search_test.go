package pattern

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestLongTexts: what PCRE2 answers within its match limit, which is for each place where a match could begin, is
// answered here within the same number of steps for all places.
func TestLongTexts(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	sites := strings.Repeat("T2_US_Caltech,T2_US_MIT,", 100)
	for name, tt := range map[string]struct {
		expr, text string
		want       bool
	}{
		"behind anything":                     {".*foo.*", x(200_000), false},
		"behind anything, there":              {".*foo.*", x(100_000) + "foo" + x(1000), true},
		"several":                             {".*T2_US_.*T2_FR_.*", sites[:2000], false},
		"several, there":                      {".*T2_US_.*T2_FR_.*", sites[:2000] + "T2_FR_X", true},
		"several and the end":                 {".*foo.*bar.*baz$", strings.Repeat("foobar", 50), false},
		"at the end, with the needed byte":    {".*foo.*bar.*baz$", strings.Repeat("foobarz", 45), false},
		"lazy":                                {".*?foo", strings.Repeat("xo", 5000), false},
		"in a group":                          {"(.*)foo", strings.Repeat("xo", 2000), false},
		"in each alternative":                 {"(?:.*a|.*b)o", strings.Repeat("xo", 1500), false},
		"of every byte":                       {"(?s).*foo.*", strings.Repeat("x\no", 1300), false},
		"from the beginnings of lines":        {"(?m)^.*foo", strings.Repeat("x\no", 1300), false},
		"many lines":                          {".*foo", strings.Repeat("xo\n", 100_000), false},
		"many lines, there":                   {".*foo", strings.Repeat("xo\n", 100_000) + "xfoo", true},
		"behind a run":                        {"[a-z]+fo+[a-z]*,", x(50_000) + "o,", false},
		"behind a run, there":                 {"[a-z]+foo,", x(50_000) + "foo,", true},
		"behind a lazy run":                   {`\w*?foo_?,`, x(50_000) + ",o_", false},
		"behind spaces":                       {`\s+$`, strings.Repeat(" ", 50_000) + "x", false},
		"behind runs in a list":               {"[^,]*_FR_[^,]*", strings.Repeat("T2_US_FRA_", 5000) + "," + strings.Repeat("T2_US_FRA_", 5000), false},
		"behind a run in each alternative":    {`(?:\w+=|[a-z]+:)y`, x(50_000) + "=:y_=z", false},
		"behind a possessive run":             {`\w++z`, x(50_000) + " z", false},
		"a byte that is nowhere":              {"(x+x+)+y", x(10_000), false},
		"a byte that is nowhere behind":       {"(x+x+)+y", "y" + x(10_000), false},
		"a byte in either case":               {"(?i)(x+x+)+Y", x(10_000), false},
		"a byte of a set":                     {"(x+x+)+[yz]", x(10_000), false},
		"a byte of either alternative":        {"(x+x+)+(?:y|az)", x(10_000), false},
		"a byte that is repeated":             {"(x+x+)+y{2,}", x(10_000), false},
		"after one of two":                    {"(?<=a|b)foo", x(8 << 20), false},
		"a byte in a look-ahead is not there": {"(?=.*y)x", x(100), false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Compile(tt.expr, 0)
			if err != nil {
				t.Fatal(err)
			}
			budget := 10_000_000 // PCRE2's match limit
			got, err := p.Found(tt.text, 0, &budget, new(Room))
			if err != nil || got != tt.want {
				t.Errorf("%v, %v; want %v", got, err, tt.want)
			}
		})
	}
	// What takes PCRE2 too long takes too long here.
	p, err := Compile("(x+x+)+yz", 0)
	if err != nil {
		t.Fatal(err)
	}
	budget := 10_000_000
	if _, err := p.Found(x(40)+"y z", 0, &budget, new(Room)); !errors.Is(err, ErrBudget) {
		t.Errorf("%v, want %v", err, ErrBudget)
	}
}

// TestWherePatternsBegin: a search that skips places finds what one finds that tries them all.
func TestWherePatternsBegin(t *testing.T) {
	texts := []string{"aabab", "abax", "aaabbx", "", "a", "ab", "ba", "\n", "a\nb", "ab\nab", "b\n\na", "aab\nba\n", "xaby", "ab\nxab", "bbb\naba"}
	for _, expr := range []string{
		".*a", ".*?b", ".+b", ".{2,}", "(.*)b", "(.*)b\\1", "(?:.*a|.*b)", ".*a|b", "(?s).*b", "(?s:.*)a", "(?>.*)b", ".*+a", ".*(?<=a)b", ".*\\Gb", ".*a\\K.*", "(?m)^a", "(?m)^.*b",
		"(?=b).*", "(?!a).*b", "(?<=a).*b", "(?<=a|b).*b", "(?<=a|x)b", "(?>^|b)a", "(?>^|\\b)b", "(?>$|^).*", "[ab]+x", "[ab]*?x", "a+b", "a+?b", "(a+)b", "(a+)b\\1", "(?:a+|b+)x", "(?:a+|b)x", "(?:a+b)+x", "(?:a+b)*a", "a++b", "a*+b", "(?>a+?)b", "(?>a+)b", "a{2,}b", "a{2,}?b", "a{1,2}b", "\\Ba+b", "(?=b)[ab]+a", "(?<=a)a+b", "a+(?<=ba)", "a*\\Kb", "a+\\Gb", "(?m)^a|b+a", "(?:a+)?b", "(?:|a+)b", "(?i)A+b", "a*b", "(a|b)b", "(?:a|b?)", "a?", "(?i)B", "(?=b)", "(?=.*b)a", "(?!.*b)a", "(?<=b)", "\\bb", "b{0}", "b{0,2}a", "(?:ab){1,2}", "(?:)", "$", "a$", "\\Z", "[ab]\\n", ".*\\n", ".*\\nb", "(?s).+b", "x.*y", "(a)?b", "(a)?\\1b",
	} {
		p, err := Compile(expr, 0)
		if err != nil {
			t.Fatalf("%q: %v", expr, err)
		}
		plain := p.withoutSkips()
		for _, text := range texts {
			for from := range len(text) + 1 {
				for _, o := range []Options{0, Anchored, NotEmpty, NotEmptyAtStart, Anchored | NotEmptyAtStart} {
					budget, other := 1_000_000, 1_000_000
					got, err := p.In(text, &budget).Match(from, o, &budget)
					want, err2 := plain.In(text, &other).Match(from, o, &other)
					if err != nil || err2 != nil || !slices.Equal(got, want) {
						t.Errorf("%q in %q from %d, options %d: %v (%v), want %v (%v)", expr, text, from, o, got, err, want, err2)
					}
				}
			}
		}
	}
}

// withoutSkips tries all places.
func (p *Pattern) withoutSkips() *Pattern {
	plain := *p
	plain.first, plain.begins, plain.run, plain.needs = nil, anywhere, nil, nil
	return &plain
}
