package classads

import (
	"strings"
	"testing"
)

func TestQuote(t *testing.T) {
	for _, c := range []struct{ text, modern, old string }{
		{"", `""`, `""`},
		{"plain", `"plain"`, `"plain"`},
		{`a "b"`, `"a \"b\""`, `"a \"b\""`},
		{`C:\dir\x`, `"C:\\dir\\x"`, `"C:\dir\x"`},
		{"tab\tü'", `"tab\t\303\274'"`, "\"tab\tü'\""},
		{"two\nlines", `"two\nlines"`, "\"two\nlines\""},
	} {
		if got := Quote(c.text); got != c.modern {
			t.Errorf("%q is quoted as %s, want %s", c.text, got, c.modern)
		}
		if got := QuoteOld(c.text); got != c.old {
			t.Errorf("%q is quoted for the old syntax as %s, want %s", c.text, got, c.old)
		}
	}
	if _, err := ParseExpr(Quote("a\x00b")); err == nil {
		t.Error("a NUL is read")
	}
}

// quoted fails unless a quoted text is read as the original.
func quoted(t *testing.T, text string) {
	t.Helper()
	if strings.IndexByte(text, 0) >= 0 {
		return
	}
	same := func(syntax string, e *Expr, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%q in the %s syntax: %v", text, syntax, err)
		}
		if v, ok := e.Literal(); !ok || !v.isString(text) {
			t.Fatalf("%q was quoted for the %s syntax and is read as %s", text, syntax, e)
		}
	}
	e, err := ParseExpr(Quote(text))
	same("new", e, err)
	// See QuoteOld for what the old syntax cannot write.
	if strings.IndexByte(text, '\n') >= 0 {
		return
	}
	e, err = ParseOldExpr(QuoteOld(text))
	same("old", e, err)
}

func (v Value) isString(s string) bool { return v.kind == String && v.str == s }

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", `"`, `\`, `\"`, `a\"b`, "\x01\x7f\xff7", "\n", `C:\dir\`, `1\"`, `"" ""`, "\t'"} {
		f.Add(s)
	}
	f.Fuzz(quoted)
}
