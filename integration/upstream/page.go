package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	pageBegin = "<!-- generated from integration/upstream; do not edit -->\n"
	pageEnd   = "<!-- end -->\n"
)

// A kind is what a case's two endings say.
type kind int

const (
	bothPass kind = iota
	onlyStock
	onlyOurs
	neither
	notRun
	kinds
)

// kindOf compares two endings. One that changes from run to run counts as failed: it says nothing good of either.
func kindOf(stock, ours Case) kind {
	switch {
	case !stock.ran() && !ours.ran():
		return notRun
	case stock.passed() && ours.passed():
		return bothPass
	case stock.passed():
		return onlyStock
	case ours.passed():
		return onlyOurs
	}
	return neither
}

// A compared case.
type compared struct {
	test, user, name string
	stock, ours      Case
	kind             kind
	why              string // of the difference, or of the failure under both
}

// compare returns all cases of a record, and complaints: what has no reason, and reasons of what no longer is.
func compare(rec *Record) (all []compared, complaints []string) {
	used, usedAlike := make([]bool, len(differ)), make([]bool, len(alike))
	for _, test := range rec.Tests {
		users := rec.Outcomes[test]
		if (users == nil) == (excluded(test) == "") {
			complaints = append(complaints, test+" was neither run nor left out with a reason, or both")
		}
		for _, user := range slices.Sorted(maps.Keys(users)) {
			sides := users[user]
			if _, ok := sides[stock]; !ok || len(sides) != 2 {
				complaints = append(complaints, test+" "+user+" was not run under both starters")
				continue
			}
			names := map[string]bool{}
			for _, side := range sides {
				for name := range side.Cases {
					names[name] = true
				}
			}
			for _, name := range slices.Sorted(maps.Keys(names)) {
				c := compared{test: test, user: user, name: name, stock: sides[stock].Cases[name], ours: sides[ours].Cases[name]}
				c.kind = kindOf(c.stock, c.ours)
				i := 0
				switch c.kind {
				case onlyStock, onlyOurs:
					if i, c.why = find(differ, test, user, name); i >= 0 {
						used[i] = true
					}
				case neither:
					if i, c.why = find(alike, test, user, name); i >= 0 {
						usedAlike[i] = true
					}
				}
				if i < 0 {
					complaints = append(complaints, fmt.Sprintf("%s %s %s has no reason: stock %s (%s), ours %s (%s)", test, user, name, c.stock, c.stock.Why, c.ours, c.ours.Why))
				}
				all = append(all, c)
			}
		}
	}
	for i, r := range differ {
		if !used[i] {
			complaints = append(complaints, fmt.Sprintf("no case of %s %v differs any more; remove its reason", r.test, r.cases))
		}
	}
	for i, r := range alike {
		if !usedAlike[i] {
			complaints = append(complaints, fmt.Sprintf("no case of %s %v fails under both any more; remove its reason", r.test, r.cases))
		}
	}
	return all, complaints
}

// page is the generated part.
func page(rec *Record, all []compared) string {
	var b strings.Builder
	var sum [kinds]int
	files := map[[2]string]*[kinds]int{}
	for _, c := range all {
		key := [2]string{c.test, c.user}
		if files[key] == nil {
			files[key] = new([kinds]int)
		}
		files[key][c.kind]++
		sum[c.kind]++
	}
	out := 0
	for _, test := range rec.Tests {
		if excluded(test) != "" {
			out++
		}
	}
	fmt.Fprintf(&b, "\nHTCondor %s has %d files of such tests; %d of them were run, %d are left out.\n\n", rec.Release, len(rec.Tests), len(rec.Tests)-out, out)
	b.WriteString("| cases | |\n| --- | --- |\n")
	for k, words := range []string{"pass under both starters", "pass only under the stock starter", "pass only under ours", "pass under neither, or not each time", "were not run: skipped by the test itself, or not reached"} {
		fmt.Fprintf(&b, "| %d | %s |\n", sum[k], words)
	}
	section(&b, "Pass only under the stock starter", all, onlyStock)
	section(&b, "Pass only under ours", all, onlyOurs)
	section(&b, "Pass under neither, or not each time", all, neither)
	b.WriteString("\n## Not run\n\n| test | daemons | cases | the test's own reason |\n| --- | --- | --- | --- |\n")
	type skip struct{ test, user, why string }
	skips := map[skip]int{}
	for _, c := range all {
		if c.kind == notRun {
			skips[skip{c.test, c.user, c.stock.Why}]++
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(skips), func(a, b skip) int { return cmp.Compare(a.test+a.user+a.why, b.test+b.user+b.why) }) {
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s |\n", s.test, s.user, skips[s], cell(s.why))
	}
	b.WriteString("\n## Left out\n\n| tests | why |\n| --- | --- |\n")
	for _, l := range left {
		var names []string
		for _, test := range rec.Tests {
			if excluded(test) == l.why {
				names = append(names, "`"+test+"`")
			}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(names, ", "), l.why)
	}
	b.WriteString("\n## By file\n\n| test | daemons | both | only stock | only ours | neither | not run |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, key := range slices.SortedFunc(maps.Keys(files), func(a, b [2]string) int { return cmp.Compare(a[0]+a[1], b[0]+b[1]) }) {
		fmt.Fprintf(&b, "| `%s` | %s |", key[0], key[1])
		for _, n := range files[key] {
			fmt.Fprintf(&b, " %d |", n)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	return b.String()
}

// section is the table of one kind. Cases of a file with the same reason and endings share a row.
func section(b *strings.Builder, title string, all []compared, k kind) {
	fmt.Fprintf(b, "\n## %s\n\n", title)
	type row struct{ test, user, stock, ours, why string }
	var order []row
	names := map[row][]string{}
	for _, c := range all {
		if c.kind != k {
			continue
		}
		r := row{c.test, c.user, c.stock.String(), c.ours.String(), c.why}
		if names[r] == nil {
			order = append(order, r)
		}
		names[r] = append(names[r], c.name)
	}
	if order == nil {
		b.WriteString("None.\n")
		return
	}
	b.WriteString("| test | daemons | cases | stock | ours | why |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, r := range order {
		list := names[r]
		words := "`" + cell(strings.Join(list[:min(len(list), 3)], "`, `")) + "`"
		if len(list) > 3 {
			words = fmt.Sprintf("%d, such as `%s`", len(list), cell(list[0]))
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | %s |\n", r.test, r.user, words, r.stock, r.ours, cell(r.why))
	}
}

// cell makes text fit into a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
