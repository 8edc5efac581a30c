package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/stocknames/cppnames"
	"podstarter/integration/stocknames/shown"
)

var update = flag.Bool("update", false, "write the generated part of docs/developer/stock-names.md")

// TestNamesPage: the page has what lists and verdicts say.
func TestNamesPage(t *testing.T) {
	all, releases := judged(t)
	path := filepath.Join(repository, "docs", "developer", "stock-names.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), pageBegin)
	_, after, end := strings.Cut(rest, pageEnd)
	if !ok || !end {
		t.Fatalf("%s lacks one of the lines %s and %s", path, strings.TrimSpace(pageBegin), strings.TrimSpace(pageEnd))
	}
	rows, err := shownRows(".", repository, all)
	if err != nil {
		t.Errorf("what shows the verdicts: %v", err)
	}
	want := before + pageBegin + page(all, releases, rows) + pageEnd + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("the page does not match lists and verdicts; write it with -update\n%s", diff)
	}
}

// TestPage: what the page says of a few names.
func TestPage(t *testing.T) {
	judged := []Judged{
		{Name: cppnames.Name{Kind: cppnames.Knob, Text: "A"}, Entry: Entry{Verdict: AsStock}, Releases: []string{"2.0", "1.0"}},
		{Name: cppnames.Name{Kind: cppnames.Knob, Text: "B"}, Entry: Entry{Verdict: Missing, Why: "Not built; see docs/admin/differences.md#mounts-of-the-job and docs/developer/adding.md."}, Releases: []string{"2.0"}},
	}
	rows := []shown.Row{
		{Name: shown.Name{Kind: cppnames.Knob, Text: "A"}, Cases: []string{"s/1", "s/2", "s/3", "s/4", "s/5"}, Tests: []shown.Test{{Package: "p/q", Name: "TestA"}}},
		{Name: shown.Name{Kind: cppnames.Knob, Text: "B"}, Beside: []shown.Test{{Package: "p", Name: "TestB"}}, Tests: []shown.Test{{Package: "p", Name: "TestC"}}},
		{Name: shown.Name{Kind: cppnames.Knob, Text: "C"}, Tests: []shown.Test{{Package: "p", Name: "TestC"}}, Why: "See docs/developer/adding.md."},
		{Name: shown.Name{Kind: cppnames.Knob, Text: "D"}, Tests: []shown.Test{{Package: "p", Name: "TestC"}}, Why: "See docs/developer/adding.md."},
		{Name: shown.Name{Kind: cppnames.Attribute, Text: "E"}, Why: "Nobody can see it."},
	}
	got := page(judged, map[string][]cppnames.Name{"1.0": nil, "2.0": nil}, rows)
	want := `
| | missing | refused | differently | as stock | no meaning here | together | in 2.0 | in 1.0 |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| knobs | 1 | 0 | 0 | 1 | 0 | 2 | 2 | 1 |
| attributes | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |
| places that read a knob whose name is not found | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |

## Knobs

### Missing: knobs

| knobs | why |
| --- | --- |
| ` + "`B`" + ` | Not built; see [differences](../admin/differences.md#mounts-of-the-job) and [adding](adding.md). |

### As stock: knobs

` + "`A`" + `.

## Attributes

## Places that read a knob whose name is not found

## What shows it

Of 5 names with the verdict *as stock*, *differently* or *refused*, 1 are in a conformance case, which runs under both starters, 1 in another test that runs the stock starter beside ours, 2 in our own tests only, and 1 in none.

### In a conformance case

| names | conformance cases | other tests |
| --- | --- | --- |
| ` + "`A` | s/1, s/2, s/3 and 2 more | `TestA` of p/q |" + `

### In a test that runs the stock starter beside ours

| names | tests with both starters | other tests |
| --- | --- | --- |
| ` + "`B` | `TestB` of p | `TestC` of p |" + `

### In our own tests only

| names | why | tests |
| --- | --- | --- |
| ` + "`C`, `D` | See [adding](adding.md). | `TestC` of p |" + `

### In none

| names | why |
| --- | --- |
| ` + "`E` | Nobody can see it. |" + `
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
