package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Starters.
const (
	stock = "stock"
	ours  = "ours"
)

// Whose the daemons are.
const (
	asUser = "user" // that of the tests
	asSudo = "sudo" // root's, which the user of the tests starts with sudo, as HTCondor's tests do it
	asRoot = "root" // root's, and so is pytest: tests that submit as another user
)

// A Record is what runs found.
type Record struct {
	// Release is HTCondor's.
	Release string
	// Tests are all files of tests that HTCondor's source has.
	Tests []string
	// Outcomes are those of tests by name, user and starter.
	Outcomes map[string]map[string]map[string]Outcome
}

// An Outcome is that of one file of tests.
type Outcome struct {
	Seconds int
	Cases   map[string]Case
}

// A Case says how often a case ended in each way, and why it failed, was skipped or not run.
type Case struct {
	Passed  int    `json:",omitempty"`
	Failed  int    `json:",omitempty"`
	Skipped int    `json:",omitempty"`
	NotRun  int    `json:",omitempty"`
	Why     string `json:",omitempty"`
}

// passed reports whether the case always passed.
func (c Case) passed() bool { return c.Passed > 0 && c.Failed == 0 && c.Skipped == 0 && c.NotRun == 0 }

// ran reports whether it passed or failed at least once.
func (c Case) ran() bool { return c.Passed+c.Failed > 0 }

func (c Case) String() string {
	var words []string
	for _, w := range []struct {
		n    int
		word string
	}{{c.Passed, "passed"}, {c.Failed, "failed"}, {c.Skipped, "skipped"}, {c.NotRun, "not run"}} {
		if w.n == 1 {
			words = append(words, w.word)
		} else if w.n > 1 {
			words = append(words, fmt.Sprintf("%s %d times", w.word, w.n))
		}
	}
	if words == nil {
		return "absent"
	}
	return strings.Join(words, ", ")
}

func (o Outcome) summary() string {
	var sum Case
	for _, c := range o.Cases {
		sum.Passed += c.Passed
		sum.Failed += c.Failed
		sum.Skipped += c.Skipped
		sum.NotRun += c.NotRun
	}
	return fmt.Sprintf("passed %d, failed %d, skipped %d, not run %d", sum.Passed, sum.Failed, sum.Skipped, sum.NotRun)
}

// load reads a record; one that is not there is empty.
func load(path string) (*Record, error) {
	rec := &Record{Outcomes: map[string]map[string]map[string]Outcome{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return rec, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	if err := json.Unmarshal(data, rec); err != nil {
		return nil, fmt.Errorf("read the record %s: %w", path, err)
	}
	return rec, nil
}

func (rec *Record) save(path string) error {
	data, err := json.MarshalIndent(rec, "", " ")
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	return nil
}

// put notes a result in place of an earlier one, or with add beside it.
func (rec *Record) put(r result, add bool) {
	users := rec.Outcomes[r.test.name]
	if users == nil {
		users = map[string]map[string]Outcome{}
		rec.Outcomes[r.test.name] = users
	}
	sides := users[r.test.user]
	if sides == nil {
		sides = map[string]Outcome{}
		users[r.test.user] = sides
	}
	if earlier, ok := sides[r.test.side]; ok && add {
		r.outcome = earlier.and(r.outcome)
	}
	sides[r.test.side] = r.outcome
}

// and adds two outcomes.
func (o Outcome) and(other Outcome) Outcome {
	sum := Outcome{Seconds: other.Seconds, Cases: map[string]Case{}}
	for name, c := range o.Cases {
		sum.Cases[name] = c
	}
	for name, c := range other.Cases {
		have := sum.Cases[name]
		why := have.Why
		if c.Failed > 0 || why == "" {
			why = c.Why
		}
		sum.Cases[name] = Case{have.Passed + c.Passed, have.Failed + c.Failed, have.Skipped + c.Skipped, have.NotRun + c.NotRun, why}
	}
	return sum
}
