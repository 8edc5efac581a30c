package pattern

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// FuzzMatch looks for panics, and compares with a search that tries all places, and with the regexp package where that
// knows the same language.
func FuzzMatch(f *testing.F) {
	for _, p := range []string{`a(b+)?c|d`, `^(\w+)@(\w+)$`, `(?i)[a-f\d]*?x`, `(?<=a)b(?!c)`, `(a*)*b`, `(?>a+)b`, `(x)\1`, `[[:alpha:]-]{2,3}+`, `(?#c)\Q.*\E`, `(?x) a # b`, `\bfoo\b`, `(?:(a)|b)*`} {
		f.Add(p, "abc foo aab user@domain xx", uint8(0))
	}
	f.Fuzz(func(t *testing.T, expr, text string, flags uint8) {
		p, err := Compile(expr, Flags(flags)&(IgnoreCase|MultiLine|DotAll|Extended))
		if err != nil {
			return
		}
		budget := 100000
		loc, err := p.In(text, &budget).Match(0, 0, &budget)
		plain, other := p.withoutSkips(), 100000
		if all, err2 := plain.In(text, &other).Match(0, 0, &other); err == nil && err2 == nil && !slices.Equal(loc, all) {
			t.Fatalf("%q in %q: %v, and %v if all places are tried", expr, text, loc, all)
		}
		if err != nil || flags != 0 || strings.ContainsAny(expr, `\[{$?#(`) || !ascii(expr) || !ascii(text) {
			return
		}
		re, err := regexp.Compile(expr)
		if err != nil {
			return
		}
		want := re.FindStringIndex(text)
		var got []int
		if loc != nil {
			got = loc[:2]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q in %q: %v, regexp says %v", expr, text, got, want)
		}
	})
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 || s[i] == 0 {
			return false
		}
	}
	return true
}
