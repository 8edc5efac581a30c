package main

import (
	"fmt"
	"strings"

	"podstarter/integration/stocknames/shown"
)

// The most cases and tests that a row of the page has.
const mostCases, mostTests = 3, 2

// shownPage says of each name what shows its verdict. Names that the same cases and tests show are in one row.
func shownPage(rows []shown.Row) string {
	var both, ours, none []shown.Row
	for _, r := range rows {
		switch {
		case len(r.Cases) > 0:
			both = append(both, r)
		case len(r.Tests) > 0:
			ours = append(ours, r)
		default:
			none = append(none, r)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## What shows it\n\nOf %d names with the verdict *as stock*, *differently* or *refused*, %d are in a conformance case, which runs under both starters, "+
		"%d in other tests only, and %d in none.\n", len(rows), len(both), len(ours), len(none))
	shownTable(&b, "Under both starters", []string{"names", "conformance cases", "other tests"}, both, func(r shown.Row) string {
		return some(r.Cases, mostCases, func(c string) string { return c }) + " | " + testsOf(r)
	})
	shownTable(&b, "By our own tests alone", []string{"names", "tests"}, ours, testsOf)
	shownTable(&b, "Shown by no test", []string{"names", "why"}, none, func(r shown.Row) string { return linked(r.Why) })
	return b.String()
}

func testsOf(r shown.Row) string {
	return some(r.Tests, mostTests, func(t shown.Test) string { return "`" + t.Name + "` of " + t.Package })
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
