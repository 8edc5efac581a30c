package conformance

import (
	"fmt"
	"slices"
	"strings"

	"podstarter/integration/turn"
)

// The generated parts of docs/admin/differences.md and
// docs/developer/differences-by-attribute.md lie between these lines.
const (
	pageBegin = "<!-- generated from integration/conformance; do not edit -->"
	pageEnd   = "<!-- end of the generated part -->"
	// fromTables is the path from the page by attribute to the one by reason.
	fromTables = "../admin/differences.md"
	allCommand = "go -C integration test -tags pool -count=1 -timeout 30m ./conformance -all"
)

// Tables is the generated part of the page by attribute: the accepted differences,
// one in each row, and the cases.
func Tables(subjects []Subject, rules []Rule) string {
	var b strings.Builder
	for _, part := range []struct{ in, title, name string }{
		{InHistory, "History ad", "attribute"},
		{InStartd, "The startd's history", "attribute"},
		{InEvents, "Event log", "line"},
		{InFiles, "What comes back", "file"},
		{InSeen, "What the job sees", "thing"},
		{InTools, "Tools", "tool"},
		{InNotes, "Seen from outside", "thing"},
		{InTiming, "Time", "wait"},
	} {
		fmt.Fprintf(&b, "### %s\n\n", part.title)
		rows := 0
		for _, r := range rules {
			if !slices.Contains(r.places(), part.in) {
				continue
			}
			if rows++; rows == 1 {
				fmt.Fprintf(&b, "| %s | stock | ours | cases | why |\n| --- | --- | --- | --- | --- |\n", part.name)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | [%s](%s#%[5]s) |\n", cell(brief(r.Name)), value(r.Stock), value(r.Ours), r.where(), r.Reason, fromTables)
		}
		if rows == 0 {
			b.WriteString("None.\n")
		}
		b.WriteString("\n")
	}
	left(&b, subjects)
	fmt.Fprintf(&b, "## The cases\n\n`make test` runs them. Those with \"in turn\" beneath their name take long, or show in another way what others show:\n"+
		"each run has a part of them, which changes by the hour, and says at its end which. There are %d parts. Those with modes beneath their name are not for others. This command runs all:\n\n    %s\n", turn.Parts, allCommand)
	for _, s := range subjects {
		if len(s.Cases) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n| case | what it shows |\n| --- | --- |\n", s.Title)
		for _, c := range s.Cases {
			name := c.Name
			if c.OnRequest {
				name += "<br>in turn"
			}
			if len(c.Pools) > 0 {
				name += "<br>" + strings.Join(c.Pools, " or ")
			}
			fmt.Fprintf(&b, "| %s | %s |\n", name, cell(c.Shows))
		}
	}
	return b.String()
}

// left writes what no case compares, or some cases do not, and why.
func left(b *strings.Builder, subjects []Subject) {
	b.WriteString("## What is not compared\n\nTimes, sizes, and names and numbers that the system gives out have to be there and to have the same type: `" +
		strings.Join(measured, "`, `") + "`.\n\nChance decides about these, under the stock starter too:\n\n| what | cases | why |\n| --- | --- | --- |\n")
	type row struct{ what, why string }
	var rows []row
	cases := map[row][]string{}
	add := func(name string, all []Chance) {
		for _, c := range all {
			why := c.Why
			if len(c.Versions) > 0 {
				why = "with " + strings.Join(c.Versions, ", ") + ": " + why
			}
			r := row{"`" + cell(strings.Join(c.Names, "`, `")) + "`", why}
			if _, ok := cases[r]; !ok {
				rows = append(rows, r)
			}
			cases[r] = append(cases[r], name)
		}
	}
	add("all", fleeting)
	for _, s := range subjects {
		for _, c := range s.Cases {
			add(c.Name, c.Fleeting)
			if c.Stuck {
				add(c.Name, byChance("the stock starter does not end by itself, and the startd kills it", "the startd's history"))
			}
		}
	}
	for _, r := range rows {
		fmt.Fprintf(b, "| %s | %s | %s |\n", r.what, strings.Join(cases[r], ", "), cell(r.why))
	}
	b.WriteString("\n")
}

// where names the cases of a rule, and the versions and kinds of pools if it is not for all.
func (r Rule) where() string {
	text := "all"
	if len(r.Cases) > 0 {
		text = strings.Join(r.Cases, ", ")
	}
	if len(r.Except) > 0 {
		text += " but " + strings.Join(r.Except, ", ")
	}
	if len(r.Versions) > 0 {
		text += " with " + strings.Join(r.Versions, ", ")
	}
	if len(r.Pools) > 0 {
		text += " in pools that are " + strings.Join(r.Pools, " or ")
	}
	if r.Loose {
		text += "; not each time"
	}
	return text
}

func value(text string) string {
	switch text {
	case Absent:
		return "absent"
	case "*":
		return "any"
	}
	return "`" + cell(brief(text)) + "`"
}

// longest is the number of characters of a name or value that the page shows; the files of
// rules have them whole.
const longest = 100

func brief(text string) string {
	if all := []rune(text); len(all) > longest {
		return string(all[:longest]) + "…"
	}
	return text
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
