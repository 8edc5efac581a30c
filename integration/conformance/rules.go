package conformance

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"podstarter/integration/harness"
)

// Where a difference shows.
const (
	InHistory = "history" // of the schedd
	InStartd  = "startd"  // its history
	InEvents  = "events"
	InFiles   = "files"  // in the submit directory
	InSeen    = "seen"   // by the job itself
	InTools   = "tools"  // what they say, and their exit codes
	InNotes   = "notes"  // of steps
	InTiming  = "timing" // how long a step waited
)

var everywhere = []string{InHistory, InStartd, InEvents, InFiles, InSeen, InTools, InNotes, InTiming}

// Rule is one accepted difference. In its name and values <scratch> stands for /scratch,
// where the sandbox is in the directory of the job, and for nothing with a startd of 23.9.
type Rule struct {
	In       string   `json:"in"`                 // one or several of the above, with commas
	Name     string   `json:"name"`               // attribute, normalised line of the event log, file, tool...; the first * stands for any text
	Stock    string   `json:"stock"`              // the normalised value under the stock starter; "-" when absent, the first * stands for any text
	Ours     string   `json:"ours"`               // the same under ours
	Cases    []string `json:"cases,omitempty"`    // names of the cases that show it, the first * of one stands for any text; empty for all
	Except   []string `json:"except,omitempty"`   // names of those that do not, though the list above has them
	Versions []string `json:"versions,omitempty"` // pairs of versions (EP+AP) under which it shows, the first * of one stands for any text; empty for all
	Pools    []string `json:"pools,omitempty"`    // kinds of pools in which it shows, such as "rootless" or "unshared partitionable"; empty for all
	Loose    bool     `json:"loose,omitempty"`    // does not show in each of the cases
	Reason   string   `json:"reason"`             // the name of one of [Reasons]
	file     string
}

// Difference is a difference that a comparison found.
type Difference struct {
	Case        string
	Proc        int
	In          string
	Name        string
	Stock, Ours string // "-" when absent
}

// String is the difference as a test prints it.
func (d Difference) String() string {
	where := d.In
	if d.Proc > 0 {
		where += fmt.Sprintf(" of process %d", d.Proc)
	}
	if d.In == InEvents && !strings.HasPrefix(d.Name, "order") {
		return fmt.Sprintf("%s: stock %s, ours %s: %s", where, d.Stock, d.Ours, d.Name)
	}
	return fmt.Sprintf("%s: %s\n\tstock: %s\n\tours:  %s", where, d.Name, d.Stock, d.Ours)
}

// Absent is the value of something that is missing.
const Absent = "-"

//go:embed differences
var rulesFiles embed.FS

// Rules reads the accepted differences: one file for each subject and one for all.
// Each rule must say where the difference shows and which of [Reasons] it has.
func Rules() ([]Rule, error) {
	names, err := fs.Glob(rulesFiles, "differences/*.json")
	if err != nil {
		return nil, err
	}
	cases := Cases()
	var all []Rule
	for _, name := range names {
		text, err := rulesFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var rules []Rule
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&rules); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		for i := range rules {
			rules[i].file = path.Base(name)
			if err := rules[i].check(cases); err != nil {
				return nil, fmt.Errorf("%s, entry %d (%s): %w", name, i+1, rules[i].Name, err)
			}
		}
		all = append(all, rules...)
	}
	return all, checkReasons(Reasons, all)
}

func (r Rule) check(cases []Case) error {
	if r.Name == "" || r.Reason == "" || r.Stock == "" || r.Ours == "" {
		return fmt.Errorf("the rule must have name, stock, ours and reason")
	}
	if r.Name == "*" {
		return fmt.Errorf("the rule is about everything; name what differs")
	}
	if r.Stock == "*" && r.Ours == "*" {
		return fmt.Errorf("the rule takes any two values; say which each side has, or leave the name to chance (Fleeting), with the reason")
	}
	for _, in := range r.places() {
		if !slices.Contains(everywhere, in) {
			return fmt.Errorf("there is no place %q; there are %s", in, strings.Join(everywhere, ", "))
		}
	}
	if err := checkKinds(r.Pools); err != nil {
		return err
	}
	for _, pattern := range slices.Concat(r.Cases, r.Except) {
		if !slices.ContainsFunc(cases, func(c Case) bool { return matches(pattern, c.Name) }) {
			return fmt.Errorf("there is no case %q", pattern)
		}
	}
	return nil
}

func (r Rule) places() []string { return strings.Split(r.In, ",") }

// accepts reports whether the rule covers the difference.
func (r Rule) accepts(d Difference) bool {
	return slices.Contains(r.places(), d.In) && r.covers(d.Case) && matches(r.Name, d.Name) &&
		valued(r.Stock, d.Stock) && valued(r.Ours, d.Ours)
}

// valued reports whether a value is what the rule names. No * stands for the lack of a
// value.
func valued(pattern, value string) bool {
	if value == Absent || pattern == Absent {
		return pattern == value
	}
	before, after, open := strings.Cut(pattern, "*")
	if !open {
		return pattern == value
	}
	return len(value) >= len(before)+len(after) && strings.HasPrefix(value, before) && strings.HasSuffix(value, after)
}

// covers reports whether the rule includes the case.
func (r Rule) covers(name string) bool {
	return (len(r.Cases) == 0 || listed(r.Cases, name)) && !listed(r.Except, name)
}

// With is the rule as it reads with these versions.
func (r Rule) With(v harness.Versions) Rule {
	scratch := "/scratch"
	if strings.HasPrefix(v.EP, "23.") {
		scratch = ""
	}
	for _, text := range []*string{&r.Name, &r.Stock, &r.Ours} {
		*text = strings.ReplaceAll(*text, "<scratch>", scratch)
	}
	return r
}

// For reports whether the rule applies to such a pool.
func (r Rule) For(k harness.Kind) bool {
	return (len(r.Versions) == 0 || listed(r.Versions, k.Versions.String())) && (len(r.Pools) == 0 || ofKind(r.Pools, k))
}

// Judge sorts the differences of one case by the rules: unlisted are those that
// no rule covers, stale the rules, with the place, that nothing showed.
//
// A rule about what jobs see, without a list of cases, is about those that tell.
func Judge(rules []Rule, c Case, found []Difference) (unlisted []Difference, stale []string) {
	for _, d := range found {
		if !slices.ContainsFunc(rules, func(r Rule) bool { return r.accepts(d) }) {
			unlisted = append(unlisted, d)
		}
	}
	for _, r := range rules {
		if r.Loose || !r.covers(c.Name) {
			continue
		}
		for _, in := range r.places() {
			if in == InSeen && !c.Facts {
				continue
			}
			if !slices.ContainsFunc(found, func(d Difference) bool { return d.In == in && r.accepts(d) }) {
				stale = append(stale, fmt.Sprintf("%s, %s, in differences/%s", in, r.Name, r.file))
			}
		}
	}
	return unlisted, stale
}

// Tally counts the differences by the reasons of the rules that accept them.
func Tally(rules []Rule, found []Difference) map[string]int {
	n := map[string]int{}
	for _, d := range found {
		if i := slices.IndexFunc(rules, func(r Rule) bool { return r.accepts(d) }); i >= 0 {
			n[rules[i].Reason]++
		}
	}
	return n
}
