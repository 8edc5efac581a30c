package compare

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
)

// Where a difference shows.
const (
	InHistory = "history"
	InEvents  = "events"
	InSeen    = "seen" // by the job itself
)

// Rule is one accepted difference.
type Rule struct {
	In     string   `json:"in"`    // InHistory, InEvents or InSeen
	Name   string   `json:"name"`  // attribute, normalised line of the event log, or what the job saw; one that ends in * stands for all that begin so
	Stock  string   `json:"stock"` // the normalised value under the stock starter; "-" when absent, "*" for any
	Ours   string   `json:"ours"`  // the same under ours
	Jobs   []string `json:"jobs"`  // names of the jobs that show it; empty for all
	Reason string   `json:"reason"`
}

// Difference is one that a comparison found.
type Difference struct {
	Job         string
	In          string
	Name        string
	Stock, Ours string // "-" when absent
}

// String is the difference as a test prints it.
func (d Difference) String() string {
	return fmt.Sprintf("job %s, %s, %s: stock %s, ours %s", d.Job, d.In, d.Name, d.Stock, d.Ours)
}

// Absent is the value of what is not there.
const Absent = "-"

//go:embed differences.json
var rulesText []byte

// Rules reads the accepted differences. Each must say where it shows and why
// it is accepted.
func Rules() ([]Rule, error) {
	var rules []Rule
	if err := json.Unmarshal(rulesText, &rules); err != nil {
		return nil, fmt.Errorf("reading differences.json: %w", err)
	}
	for i, r := range rules {
		if !slices.Contains([]string{InHistory, InEvents, InSeen}, r.In) || r.Name == "" || r.Reason == "" || r.Stock == "" || r.Ours == "" {
			return nil, fmt.Errorf("differences.json, entry %d (%s): in, name, stock, ours and reason must be said", i+1, r.Name)
		}
		for _, name := range r.Jobs {
			if !slices.ContainsFunc(Jobs, func(j Job) bool { return j.Name == name }) {
				return nil, fmt.Errorf("differences.json, entry %d (%s): there is no job %q", i+1, r.Name, name)
			}
		}
	}
	return rules, nil
}

// accepts reports whether the rule covers the difference.
func (r Rule) accepts(d Difference) bool {
	if r.In != d.In || !r.covers(d.Job) {
		return false
	}
	if !matches(r.Name, d.Name) {
		return false
	}
	return (r.Stock == "*" || r.Stock == d.Stock) && (r.Ours == "*" || r.Ours == d.Ours)
}

func (r Rule) covers(job string) bool {
	return len(r.Jobs) == 0 || slices.Contains(r.Jobs, job)
}

// Judge sorts differences by the rules: unlisted are those that no rule covers,
// stale the rules, with the job, that nothing showed. The jobs are those that
// were compared.
func Judge(rules []Rule, jobs []string, found []Difference) (unlisted []Difference, stale []string) {
	for _, d := range found {
		if !slices.ContainsFunc(rules, func(r Rule) bool { return r.accepts(d) }) {
			unlisted = append(unlisted, d)
		}
	}
	for _, r := range rules {
		for _, job := range jobs {
			shows := slices.ContainsFunc(found, func(d Difference) bool { return d.Job == job && r.accepts(d) })
			if r.covers(job) && !shows {
				stale = append(stale, fmt.Sprintf("job %s, %s, %s", job, r.In, r.Name))
			}
		}
	}
	return unlisted, stale
}
