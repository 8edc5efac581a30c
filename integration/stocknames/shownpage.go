package main

import (
	"fmt"
	"slices"
	"strings"

	"podstarter/integration/stocknames/shown"
)

// The most cases and tests that a row of the page has.
const mostCases, mostTests = 3, 2

// shownPage says of each name what shows its verdict. Names that the same cases and tests show are in one row.
func shownPage(rows []shown.Row) string {
	var both, beside, ours, none []shown.Row
	for _, r := range rows {
		switch {
		case len(r.Cases) > 0:
			both = append(both, r)
		case len(r.Beside) > 0:
			beside = append(beside, r)
		case len(r.Tests) > 0:
			ours = append(ours, r)
		default:
			none = append(none, r)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## What shows it\n\nOf %d names with the verdict *as stock*, *differently* or *refused*, %d are in a conformance case, which runs under both starters, "+
		"%d in another test that runs the stock starter beside ours, %d in our own tests only, and %d in none.\n", len(rows), len(both), len(beside), len(ours), len(none))
	shownTable(&b, "In a conformance case", []string{"names", "conformance cases", "other tests"}, both, func(r shown.Row) string {
		return some(r.Cases, mostCases, func(c string) string { return c }) + " | " + testsOf(slices.Concat(r.Beside, r.Tests))
	})
	shownTable(&b, "In a test that runs the stock starter beside ours", []string{"names", "tests with both starters", "other tests"}, beside, func(r shown.Row) string {
		return testsOf(r.Beside) + " | " + testsOf(r.Tests)
	})
	shownTable(&b, "In our own tests only", []string{"names", "why", "tests"}, ours, func(r shown.Row) string { return linked(r.Why) + " | " + testsOf(r.Tests) })
	shownTable(&b, "In none", []string{"names", "why"}, none, func(r shown.Row) string { return linked(r.Why) })
	return b.String()
}

func testsOf(tests []shown.Test) string {
	return some(tests, mostTests, func(t shown.Test) string { return "`" + t.Name + "` of " + t.Package })
}

// some are the first of a list, and how many more there are.
func some[T any](all []T, most int, text func(T) string) string {
	if len(all) <= most {
		return join(all, text, ", ")
	}
	return fmt.Sprintf("%s and %d more", join(all[:most], text, ", "), len(all)-most)
}

// shownTable writes one table, with a row for each text of what shows names.
func shownTable(b *strings.Builder, title string, columns []string, rows []shown.Row, shows func(shown.Row) string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n| %s |\n|%s\n", title, strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
	var order []string
	names := map[string][]string{}
	for _, r := range rows {
		by := shows(r)
		if names[by] == nil {
			order = append(order, by)
		}
		names[by] = append(names[by], "`"+r.Name.Text+"`")
	}
	for _, by := range order {
		fmt.Fprintf(b, "| %s | %s |\n", strings.Join(names[by], ", "), strings.TrimSpace(by))
	}
}
