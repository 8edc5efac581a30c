package compare

import (
	"fmt"
	"strings"
)

// The generated part of docs/differences.md lies between these lines.
const (
	pageBegin = "<!-- generated from integration/compare/differences.json; do not edit -->"
	pageEnd   = "<!-- end of the generated part -->"
)

// Tables is the generated part of the page: what was compared, and the accepted
// differences.
func Tables(rules []Rule) string {
	var b strings.Builder
	b.WriteString("| job | what it is there for |\n| --- | --- |\n")
	for _, j := range Jobs {
		fmt.Fprintf(&b, "| %s | %s |\n", j.Name, cell(j.Shows))
	}
	for _, part := range []struct{ in, title, name string }{
		{InHistory, "History ad", "attribute"},
		{InEvents, "Event log", "line"},
		{InSeen, "What the job sees", "thing"},
	} {
		fmt.Fprintf(&b, "\n### %s\n\n", part.title)
		rows := 0
		for _, r := range rules {
			if r.In != part.in {
				continue
			}
			if rows++; rows == 1 {
				fmt.Fprintf(&b, "| %s | stock | ours | jobs | why |\n| --- | --- | --- | --- | --- |\n", part.name)
			}
			jobs := "all"
			if len(r.Jobs) > 0 {
				jobs = strings.Join(r.Jobs, ", ")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.Name, value(r.Stock), value(r.Ours), jobs, cell(r.Reason))
		}
		if rows == 0 {
			b.WriteString("None.\n")
		}
	}
	return b.String()
}

func value(text string) string {
	switch text {
	case Absent:
		return "absent"
	case "*":
		return "any"
	}
	return "`" + cell(text) + "`"
}

// cell keeps text from ending a table's cell or row.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}

// Replace puts the tables between the marks of the page.
func Replace(page, tables string) (string, error) {
	before, rest, ok := strings.Cut(page, pageBegin)
	_, after, closed := strings.Cut(rest, pageEnd)
	if !ok || !closed {
		return "", fmt.Errorf("the page lacks the line %q or %q", pageBegin, pageEnd)
	}
	return before + pageBegin + "\n" + tables + pageEnd + after, nil
}
