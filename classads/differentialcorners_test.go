//go:build differential

package classads

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// compareListed compares answers, and checks that those which package doc lists as different are.
func compareListed(t *testing.T, queries []query, ours func(query) answer, listed func(query) bool) {
	t.Helper()
	differ := 0
	for i, theirs := range ask(t, queries) {
		if theirs.Problem != "" {
			t.Fatalf("%+v: %s", queries[i], theirs.Problem)
		}
		mine := ours(queries[i])
		mine.Problem = ""
		switch same := mine == theirs; {
		case listed(queries[i]) && same:
			t.Errorf("%+v: both say %+v; the list says that they differ", queries[i], mine)
		case listed(queries[i]):
			differ++
		case !same:
			t.Errorf("%+v\n   HTCondor %+v\n   ours     %+v", queries[i], theirs, mine)
		}
	}
	t.Logf("%d answers, %d of them differ as listed", len(queries), differ)
}

// TestNamesAgainstHTCondor compares lines with what condor_q -long prints, in an order of its own.
func TestNamesAgainstHTCondor(t *testing.T) {
	raw := []string{
		"a b", "it's", "'c d'", "parent", "true", "is", "9", "1a", "ä", "a\tb", "a \t b", "a\t", "a\x01", "a\rb", "a\x7f", `"u"`, `a"b`, `a\b`, "a-b", "a.b", "a;b", "a]", "a[0]", "/a", "//a", "(a", ".a", ",", "a#", "a*",
		"  a ", "\ta", "#a", " # a", // these are not names as they stand
	}
	quoted := []string{"[a", "{a", "-a", "<a"} // as package doc lists
	var ads []string
	for _, name := range append(raw, quoted...) {
		ads = append(ads, "ClusterId = 1\nProcId = "+strconv.Itoa(len(ads))+"\n"+name+" = 3\nzz = [ 'x y' = 5 ] // x\n")
	}
	theirs := strings.Split(strings.TrimSuffix(ask(t, []query{{Long: strings.Join(ads, "\n")}})[0].Print, "\n\n"), "\n\n")
	if len(theirs) != len(ads) {
		t.Fatalf("condor_q prints %d ads of %d", len(theirs), len(ads))
	}
	for i, text := range ads {
		ad, err := ParseOld(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		mine, listed := slices.Sorted(strings.Lines(ad.FormatOld())), i >= len(raw)
		if diff := cmp.Diff(slices.Sorted(strings.Lines(theirs[i]+"\n")), mine); (diff != "") != listed {
			t.Errorf("%q, which is listed %v (-HTCondor +ours):\n%s", text, listed, diff)
		}
	}
}

// TestTextAfterExpressionsAgainstHTCondor: HTCondor ignores it in the old syntax.
func TestTextAfterExpressionsAgainstHTCondor(t *testing.T) {
	var queries []query
	for _, text := range []string{"1 ? 2 : 3 garbage", "1 garbage", "-00x1be", "1 2", `"a" "b"`, "a = b", "a =? b", "1;", "1,2", "a..5", "0x1.8p3"} {
		queries = append(queries, query{Old: "Name = " + text + "\n"})
	}
	compareListed(t, queries, func(q query) answer { return ours(t, q) }, func(q query) bool { return true })
}

// TestJSONAgainstHTCondor compares JSON, and what is not JSON: HTCondor reads some of it.
func TestJSONAgainstHTCondor(t *testing.T) {
	values := []string{
		"1", "-1", "0", "-0", "1.5", "-0.0", "1e5", "1E+5", "1.5e-3", "1e400", "true", "false", "null", `"x"`, `""`, `"\u0041\n\/"`, `"\/Expr(1 + a)\/"`, `"\/expr(1)\/"`, `"/Expr(1)/"`, `"\/Expr(1"`, `"\u0000"`, `"\/Expr()\/"`, `"\/Expr(1 garbage)\/"`,
		"{}", "[]", `[1,"a",{"b":[]}]`, `{"b":{"c":1}}`, "[1,]", "[,1]", "nan", "Infinity", "'x'", "+1", "1.", "1.5e", "--1", "- 1", "1-2", "undefined", "error", "tru", "truex", "",
		// numbers that are none in JSON
		"01", "00", "08", "0x1", ".5", "-.5", "01.5", "-01", "-00", "-0x1", "0x1.8", "..5", "1.8.8",
		strings.Repeat("[", 498) + strings.Repeat("]", 498), `"\/Expr(` + strings.Repeat("(", 165) + "1" + strings.Repeat(")", 165) + `)\/"`, `"\/Expr(` + strings.Repeat("(", 166) + "1" + strings.Repeat(")", 166) + `)\/"`,
		// listed
		strings.Repeat("[", 501) + strings.Repeat("]", 501),
		`"\ud83d\ude00"`, "99999999999999999999", "TRUE", "True", "NULL", `"x" "y"`, "// c\n1", "/* c */1",
	}
	var queries []query
	for _, v := range values {
		queries = append(queries, query{JSON: `{"a":` + v + `}`})
	}
	for _, text := range []string{"{}", `{"a b":1,"parent":2,"it's":3}`, `{"a":1,"A":2}`, `{"":1}`, "{a:1}", "{'a':1}", `{"a" 1}`, `{"a":1 "b":2}`, `{"a":1;"b":2}`, `{"a":1,}`, `{,"a":1}`, `{"a":1} x`, `[{"a":1}]`} {
		queries = append(queries, query{JSON: text})
	}
	listed := map[string]bool{`"\ud83d\ude00"`: true, "99999999999999999999": true}
	for _, v := range []string{"TRUE", "True", "NULL", `"x" "y"`, "// c\n1", "/* c */1"} {
		if listed[v] = true; json.Valid([]byte(v)) {
			t.Errorf("%s is JSON", v)
		}
	}
	for _, text := range []string{`{"a":1,}`, `{,"a":1}`, `{"a":1} x`, `[{"a":1}]`, strings.Repeat("[", 501) + strings.Repeat("]", 501)} {
		listed[text] = true
	}
	compareListed(t, queries, func(q query) answer {
		a, err := ParseJSON(q.JSON)
		if err != nil {
			return answer{}
		}
		return answer{Parse: true, Print: string(appendAd(nil, a, printer{sorted: true}))}
	}, func(q query) bool {
		return listed[q.JSON] || listed[strings.TrimSuffix(strings.TrimPrefix(q.JSON, `{"a":`), "}")]
	})
}
