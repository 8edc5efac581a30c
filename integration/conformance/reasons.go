package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// Weight is how much a user notices of a difference. The heaviest comes first on
// the page.
type Weight int

// The weights. Each is a section of docs/admin/differences.md.
const (
	Outcome Weight = iota // the job ends differently, or other files come back
	Words                 // the same ending in other words, or with another subcode
	Inside                // what the job sees, or what is measured of it
	Records               // attributes and event log lines that nobody acts on
	Older                 // only with HTCondor 23.9 on one side
)

// weights say for the page what the reasons of each weight have in common.
var weights = []struct{ title, lead string }{
	Outcome: {"A job ends differently, or other files come back",
		"Read these first: they decide whether a user gets results."},
	Words: {"The same ending, in other words",
		"Codes and subcodes are the same unless the row says otherwise."},
	Inside: {"What a job sees, and what is measured",
		""},
	Records: {"Attributes and event log lines only",
		"No job ends differently. A report that reads these attributes or events may show it."},
	Older: {"Only with HTCondor 23.9 on one side",
		"On the execution point, podstarter does what the starter of 25.14 does."},
}

// Reason is why a difference is accepted, and what it means for users.
type Reason struct {
	Name   string // as rules call it, and as the page's anchor
	Weight Weight
	Notice string // what a user notices
	Why    string
	Do     string // what user or admin should do about it
}

// check returns an error that says what the reason lacks.
func (r Reason) check() error {
	if r.Name == "" || r.Notice == "" || r.Why == "" || r.Do == "" {
		return fmt.Errorf("reason %q: it must have name, notice, why and do", r.Name)
	}
	if strings.Trim(r.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Errorf("reason %q: a name has small letters, digits and dashes, since it is an anchor of the page", r.Name)
	}
	if int(r.Weight) < 0 || int(r.Weight) >= len(weights) {
		return fmt.Errorf("reason %q: there is no weight %d", r.Name, r.Weight)
	}
	return nil
}

// checkReasons returns an error if a rule has a reason that is not in the table,
// or if the table has a reason that is incomplete, or that no rule has.
func checkReasons(reasons []Reason, rules []Rule) error {
	for i, r := range reasons {
		if err := r.check(); err != nil {
			return err
		}
		if slices.ContainsFunc(reasons[:i], func(o Reason) bool { return o.Name == r.Name }) {
			return fmt.Errorf("two reasons are called %q", r.Name)
		}
		if !slices.ContainsFunc(rules, func(rule Rule) bool { return rule.Reason == r.Name }) {
			return fmt.Errorf("reason %q: no rule has it; remove it from reasons_table.go, or write the rule", r.Name)
		}
	}
	for _, rule := range rules {
		if !slices.ContainsFunc(reasons, func(r Reason) bool { return r.Name == rule.Reason }) {
			return fmt.Errorf("differences/%s, %s: there is no reason %q; add it to reasons_table.go", rule.file, rule.Name, rule.Reason)
		}
	}
	return nil
}

// Summary is the generated part of the page by reason, heaviest first.
func Summary(reasons []Reason) string {
	var b strings.Builder
	for weight, w := range weights {
		fmt.Fprintf(&b, "## %s\n\n", w.title)
		if w.lead != "" {
			fmt.Fprintf(&b, "%s\n\n", w.lead)
		}
		b.WriteString("| what a user notices | why | what to do |\n| --- | --- | --- |\n")
		for _, r := range reasons {
			if int(r.Weight) == weight {
				fmt.Fprintf(&b, "| <a id=\"%s\"></a>%s | %s | %s |\n", r.Name, cell(r.Notice), cell(r.Why), cell(r.Do))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
