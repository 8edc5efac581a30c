package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"podstarter/integration/stocknames/cppnames"
	"podstarter/integration/stocknames/shown"
)

// The generated part of docs/developer/stock-names.md lies between these lines.
const (
	pageBegin = "<!-- generated from integration/stocknames; do not edit -->\n"
	pageEnd   = "<!-- end of the generated part -->\n"
)

// titles say what names of a kind are, for headings and sentences.
var titles = []struct {
	kind        cppnames.Kind
	title, what string
}{
	{cppnames.Knob, "Knobs", "knob"},
	{cppnames.Attribute, "Attributes", "attribute"},
	{cppnames.Unknown, "Places that read a knob whose name is not found", "place"},
}

// order is that of the verdicts on the page: first what someone may miss.
var order = []Verdict{Missing, Refused, Differently, AsStock, NoMeaning}

// page is the generated part; rows are what shows the verdicts.
func page(all []Judged, releases map[string][]cppnames.Name, rows []shown.Row) string {
	var b strings.Builder
	counts(&b, all, releases)
	for _, k := range titles {
		fmt.Fprintf(&b, "\n## %s\n", k.title)
		for _, v := range order {
			rowsOf(&b, all, k.kind, v, k.what)
		}
	}
	b.WriteString(shownPage(rows))
	return b.String()
}

// counts writes how many names have which verdict.
func counts(b *strings.Builder, all []Judged, releases map[string][]cppnames.Name) {
	b.WriteString("\n| | " + join(order, func(v Verdict) string { return string(v) }, " | ") + " | together |")
	for _, r := range newestFirst(releases) {
		fmt.Fprintf(b, " in %s |", r)
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", len(order)+2+len(releases)) + "\n")
	for _, k := range titles {
		fmt.Fprintf(b, "| %s |", strings.ToLower(k.title))
		total := 0
		for _, v := range order {
			n := count(all, func(j Judged) bool { return j.Kind == k.kind && j.Entry.Verdict == v })
			total += n
			fmt.Fprintf(b, " %d |", n)
		}
		fmt.Fprintf(b, " %d |", total)
		for _, r := range newestFirst(releases) {
			fmt.Fprintf(b, " %d |", count(all, func(j Judged) bool { return j.Kind == k.kind && slices.Contains(j.Releases, r) }))
		}
		b.WriteString("\n")
	}
}

func count(all []Judged, is func(Judged) bool) int {
	n := 0
	for _, j := range all {
		if is(j) {
			n++
		}
	}
	return n
}

func join[T any](all []T, text func(T) string, by string) string {
	words := make([]string, 0, len(all))
	for _, x := range all {
		words = append(words, text(x))
	}
	return strings.Join(words, by)
}

// rowsOf writes the names of a kind with one verdict, those with the same reason together.
func rowsOf(b *strings.Builder, all []Judged, kind cppnames.Kind, v Verdict, what string) {
	var reasons []string
	byReason := map[string][]Judged{}
	for _, j := range all {
		if j.Kind != kind || j.Entry.Verdict != v {
			continue
		}
		if _, ok := byReason[j.Entry.Why]; !ok {
			reasons = append(reasons, j.Entry.Why)
		}
		byReason[j.Entry.Why] = append(byReason[j.Entry.Why], j)
	}
	if len(reasons) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s: %s\n\n", strings.ToUpper(string(v)[:1])+string(v)[1:], plural(what))
	if v == AsStock {
		b.WriteString(named(byReason[""]) + ".\n")
		return
	}
	fmt.Fprintf(b, "| %s | why |\n| --- | --- |\n", plural(what))
	for _, why := range reasons {
		fmt.Fprintf(b, "| %s | %s |\n", named(byReason[why]), linked(why))
	}
}

func plural(what string) string { return what + "s" }

// mostNamed is how many names of library files one row has. The lists have all.
const mostNamed = 40

// named are the names, and how many more have their verdict by their files.
func named(all []Judged) string {
	var words []string
	more := 0
	for _, j := range all {
		if len(j.Entry.Files) > 0 && len(all) > mostNamed {
			more++
			continue
		}
		words = append(words, "`"+strings.ReplaceAll(j.Text, "|", `\|`)+"`")
	}
	if more > 0 {
		var files []string
		for _, j := range all {
			for _, f := range j.Entry.Files {
				if f = "`" + f + "`"; !slices.Contains(files, f) {
					files = append(files, f)
				}
			}
		}
		words = append(words, fmt.Sprintf("%d names in %s", more, strings.Join(files, ", ")))
	}
	return strings.Join(words, ", ")
}

var pageName = regexp.MustCompile(`docs/([a-z]+)/([a-z-]+)\.md(#[a-z0-9-]+)?`)

// linked turns pages' paths into links from docs/developer.
func linked(text string) string {
	return pageName.ReplaceAllStringFunc(text, func(path string) string {
		m := pageName.FindStringSubmatch(path)
		to := "../" + m[1] + "/" + m[2] + ".md" + m[3]
		if m[1] == "developer" {
			to = m[2] + ".md" + m[3]
		}
		return "[" + strings.ReplaceAll(m[2], "-", " ") + "](" + to + ")"
	})
}
