package classads

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOldStrings tests the backslash in the old syntax (HTCondor
// src/classad/lexer.cpp:tokenizeStringOld).
func TestOldStrings(t *testing.T) {
	for _, c := range []struct{ line, value, printed string }{
		{`A = "plain"`, `plain`, `A = "plain"`},
		{`A = "C:\temp\new"`, `C:\temp\new`, `A = "C:\temp\new"`},
		{`A = "say \"hi\""`, `say "hi"`, `A = "say \"hi\""`},
		{`A = "C:\dir\"`, `C:\dir\`, `A = "C:\dir\"`},
		{`A = "C:\dir\"  `, `C:\dir\`, `A = "C:\dir\"`},
		{`A = "\\"`, `\\`, `A = "\\"`},
		{`A = "\"`, `\`, `A = "\"`},
		{`A = "\"\""`, `""`, `A = "\"\""`},
		{`A = "a\\"b"`, `a\"b`, `A = "a\\"b"`},
		{"A = \"two\nlines\"", "two\nlines", "A = \"two\nlines\""},
		{`A = ""`, ``, `A = ""`},
		{`A="ümlaut"`, `ümlaut`, `A = "ümlaut"`},
	} {
		name, e, err := ParseOldLine(c.line)
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		got, _ := e.Eval(Env{}).Str()
		if diff := cmp.Diff([2]string{c.value, c.printed}, [2]string{got, string(AppendOldLine(nil, name, e))}); diff != "" {
			t.Errorf("%s: %s", c.line, diff)
		}
	}
}

func TestOldLineErrors(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"no equals sign", "not of the form"},
		{"= 1", "not of the form"},
		{"A =", "expected an operand at the end"},
		{`A = "open`, "string does not end"},
		{`A = 1 2`, `expected the end of the expression at byte 2, before "2"`},
		{`A = (1`, "expected )"},
		{`A = 1 +`, "expected an operand"},
		{`A = "x" "y"`, "expected the end"}, // only the new syntax joins strings
		{`A = [ x = 1`, "expected ; or ]"},
		{`A = f(1,)`, "expected an operand"},
		{"A = \x00", "NUL"},
		{`A = #`, "no expression has the character"},
		{`A = 0x10`, "cannot begin with 0"},
		{`A = -00x10`, "expected the end"},
		{`A = [;]`, "expected an attribute name"},
		{`A = [ ; ; ]`, "expected an attribute name"},
		{"A\x00 = 1", "not of the form"},
		{"A\nB = 1", "not of the form"},
	} {
		_, _, err := ParseOldLine(c.line)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.line, err, c.want)
		}
	}
	_, err := ParseOld("a = 1\n\n# comment\nb = )\n")
	if err == nil || !strings.Contains(err.Error(), "line 4: attribute b") {
		t.Errorf("%v does not name the line and the attribute", err)
	}
}

func TestOldReals(t *testing.T) {
	for _, c := range []struct {
		r    float64
		want string
	}{
		{0, "0.0"}, {math.Copysign(0, -1), "-0.0"}, {1, "1.0"}, {-1.5, "-1.5"}, {0.1, "0.1"}, {1e15, "1000000000000000.0"}, {1e16, "1E+16"},
		{123456789.123, "123456789.123"}, {1.0 / 3, "0.3333333333333333"}, {1e-5, "1E-05"}, {0.0001, "0.0001"}, {1e300, "1E+300"},
		{9007199254740993, "9007199254740992.0"}, {math.Inf(1), `real("INF")`}, {math.Inf(-1), `real("-INF")`}, {math.NaN(), `real("NaN")`}, {2.5e-10, "2.5E-10"},
	} {
		if got := RealExpr(c.r).OldString(); got != c.want {
			t.Errorf("%v is printed %s, want %s", c.r, got, c.want)
		}
	}
}

func TestBothSyntaxes(t *testing.T) {
	e, err := ParseExpr("a =?= 1.5 && \"tab\\t\\001\" isnt 'b c'[0] ?: {1}")
	if err != nil {
		t.Fatal(err)
	}
	want := [2]string{
		`a is 1.500000000000000E+00 && "tab\t\001" isnt 'b c'[0] ?: { 1 }`,
		"a =?= 1.5 && \"tab\t\x01\" =!= 'b c'[0] ?: { 1 }",
	}
	if diff := cmp.Diff(want, [2]string{e.String(), e.OldString()}); diff != "" {
		t.Error(diff)
	}
}

// TestNamesInLines: a line has its name as it is, as condor_q -long and the daemons write and read it. A name that could be taken for more
// than a name is quoted.
func TestNamesInLines(t *testing.T) {
	for name, want := range map[string]string{
		"a b": "a b = 1", "it's": "it's = 1", "'c d'": "'c d' = 1", "parent": "parent = 1", "true": "true = 1", "9": "9 = 1", "\u00e4": "\u00e4 = 1",
		"a=b": "'a=b' = 1", "a\nb = 2": "'a\\nb = 2' = 1", " a": "' a' = 1", "a ": "'a ' = 1", "#a": "'#a' = 1", "-": "'-' = 1", "*** a": "'*** a' = 1", "[a": "'[a' = 1", "a\tb": "a\tb = 1", "a\t": "a\t = 1", "a\x1b\x7f": "a\x1b\x7f = 1", "\ta": "'\\ta' = 1",
	} {
		ad := NewAd()
		ad.SetInt(name, 1)
		for _, got := range []string{strings.TrimSuffix(ad.FormatOld(), "\n"), strings.TrimSuffix(ad.FormatSorted(), "\n")} {
			if got != want {
				t.Errorf("%q is written %q, want %q", name, got, want)
			}
		}
		quoted := want[0] == '\'' && name[0] != '\'' // which nobody reads as that name
		if back, err := ParseOld(want); quoted && err == nil && back.Has(name) || !quoted && (err != nil || !back.Has(name) || back.Len() != 1) {
			t.Errorf("%q is read as %v, %v", want, back, err)
		}
	}
	// In a nested ad it is a name of the language.
	if ad, err := ParseOld("y = [ 'e f' = 5 ]"); err != nil || ad.FormatOld() != "y = [ 'e f' = 5 ]\n" {
		t.Errorf("%v, %v", ad, err)
	}
}
