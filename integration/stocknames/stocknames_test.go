package main

import (
	"path/filepath"
	"strings"
	"testing"

	"podstarter/integration/stocknames/cppnames"
)

// repository is the root of the checkout.
var repository = filepath.Join("..", "..")

func judged(t *testing.T) ([]Judged, map[string][]cppnames.Name) {
	t.Helper()
	releases, err := readReleases("releases")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := readTables("verdicts")
	if err != nil {
		t.Fatal(err)
	}
	all, err := judge(releases, tables)
	if err != nil {
		t.Errorf("lists and verdicts do not agree: %v", err)
	}
	return all, releases
}

// TestVerdicts: each name that a release reads has one verdict, no verdict is about another, and what is said to work as under
// stock is read by our code.
func TestVerdicts(t *testing.T) {
	all, releases := judged(t)
	if len(releases) < 2 || len(all) < 1000 {
		t.Fatalf("%d releases with %d names: lists are lost", len(releases), len(all))
	}
	literals, err := literalsIn(repository)
	if err != nil {
		t.Fatal(err)
	}
	if err := unread(all, literals); err != nil {
		t.Error(err)
	}
	for _, n := range all {
		if n.Kind == cppnames.Unknown {
			continue
		}
		for _, f := range n.Files {
			if ownCode(f) && len(n.Entry.Names) == 0 {
				t.Errorf("%s %s, which %s reads, has no verdict of its own", n.Kind, n.Text, f)
			}
		}
	}
}

// TestShown: each verdict is shown under both starters, by a conformance case or another test, except for those that say why not.
func TestShown(t *testing.T) {
	all, _ := judged(t)
	rows, err := shownRows(".", repository, all)
	if err != nil {
		t.Error(err)
	}
	not, ours, both := 0, 0, 0
	for _, r := range rows {
		switch {
		case len(r.Cases) > 0:
			both++
		case len(r.Beside) > 0:
		case len(r.Tests) > 0:
			ours++
		default:
			not++
		}
	}
	if not > mostUnshown {
		t.Errorf("%d verdicts are shown by nothing, of which there may be %d: write a case or a test", not, mostUnshown)
	}
	if ours > mostOurs {
		t.Errorf("%d verdicts are shown without the stock starter only, of which there may be %d: write a conformance case", ours, mostOurs)
	}
	if both < leastByCases {
		t.Errorf("%d verdicts are shown under both starters; there were %d", both, leastByCases)
	}
}

// TestJudge: each way in which names and verdicts can part is an error.
func TestJudge(t *testing.T) {
	knob := func(name string, files ...string) cppnames.Name {
		return cppnames.Name{Kind: cppnames.Knob, Text: name, Files: files}
	}
	names := []cppnames.Name{knob("A", "condor_starter.V6.1/a.cpp"), knob("B", "lib/b.cpp", "lib/c.cpp")}
	own := Entry{Verdict: AsStock, Names: []string{"A"}}
	group := Entry{Verdict: NoMeaning, Why: "x", Files: []string{"lib/*"}}
	for name, tt := range map[string]struct {
		entries []Entry
		want    string
	}{
		"all is well":         {[]Entry{own, group}, ""},
		"a name without":      {[]Entry{own}, "knob B (lib/b.cpp lib/c.cpp) has no verdict"},
		"only some files":     {[]Entry{own, {Verdict: NoMeaning, Why: "x", Files: []string{"lib/b.cpp"}}}, "knob B (lib/b.cpp lib/c.cpp) has no verdict"},
		"a verdict too many":  {[]Entry{own, group, {Verdict: Missing, Why: "x", Names: []string{"C"}}}, "knob C has a verdict, but no release reads it"},
		"two":                 {[]Entry{own, own, group}, "knob A has two verdicts"},
		"no reason":           {[]Entry{own, {Verdict: Missing, Names: []string{"B"}}}, `"missing" needs a reason`},
		"no verdict":          {[]Entry{own, {Verdict: "fine", Why: "x", Names: []string{"B"}}}, `"fine" is no verdict`},
		"as stock by files":   {[]Entry{own, {Verdict: AsStock, Files: []string{"lib/*"}}}, "are listed one by one"},
		"files of no use":     {[]Entry{own, group, {Verdict: Missing, Why: "x", Files: []string{"other/*"}}}, "the pattern other/* is of no file"},
		"the starter's files": {[]Entry{{Verdict: Missing, Why: "x", Files: []string{"condor_starter.V6.1/a.cpp"}}, group}, "need a verdict each"},
		"names and files":     {[]Entry{own, {Verdict: Missing, Why: "x", Names: []string{"B"}, Files: []string{"lib/*"}}}, "an entry has names, or files"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := judge(map[string][]cppnames.Name{"1.0": names}, []Table{{cppnames.Knob, tt.entries}})
			said := ""
			if err != nil {
				said = err.Error()
			}
			if (tt.want == "") != (said == "") || !strings.Contains(said, tt.want) {
				t.Errorf("%q, want %q in it", said, tt.want)
			}
		})
	}
}

// TestUnread: a verdict "as stock" needs each of its literals, and "missing" has none.
func TestUnread(t *testing.T) {
	all := []Judged{
		{Name: cppnames.Name{Kind: cppnames.Knob, Text: "READ"}, Entry: Entry{Verdict: AsStock}},
		{Name: cppnames.Name{Kind: cppnames.Knob, Text: "NOT_READ"}, Entry: Entry{Verdict: AsStock}},
		{Name: cppnames.Name{Kind: cppnames.Knob, Text: "MISSING"}, Entry: Entry{Verdict: Missing}},
		{Name: cppnames.Name{Kind: cppnames.Knob, Text: "A_*_B"}, Entry: Entry{Verdict: AsStock, Found: []string{"a_", "_b"}}},
	}
	all = append(all, Judged{Name: cppnames.Name{Kind: cppnames.Attribute, Text: "Built"}, Entry: Entry{Verdict: Missing}},
		Judged{Name: cppnames.Name{Kind: cppnames.Attribute, Text: "Other"}, Entry: Entry{Verdict: Missing, Alike: []string{"Other"}}})
	err := unread(all, map[string]bool{"Read": true, "A_": true, "Built": true, "Other": true, "missing": true})
	want := `knob NOT_READ is said to work as under stock, but no literal of our code is "NOT_READ"` + "\n" +
		`knob A_*_B is said to work as under stock, but no literal of our code is "_b"` + "\n" +
		`attribute Built is said to be missing, but a literal of our code is "Built": has it been built?`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
