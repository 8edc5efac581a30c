package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// recordPath is where the record is, below the project's directory.
const recordPath = "integration/matrix/record.json"

// A Record has the last result of each row that was run, by the rows' names.
type Record map[string]Result

// A Result is what came of a row.
type Result struct {
	// Date is the day, and Source the commit, on which it was run.
	Date, Source string
	// Down says why there was no pool to run tests on.
	Down string `json:",omitempty"`
	// Node is what the node and the API server said they are.
	Node Node
	// Suites are the tests, by package.
	Suites []Outcome
	// Seconds is how long all of it took.
	Seconds int
}

// Node is what a node reports.
type Node struct{ APIServer, Kubelet, Runtime, Kernel, System string }

// An Outcome is what came of the tests of a package, those in other tests not counted.
type Outcome struct {
	Package string
	Passed  []string
	// Failed are tests that failed or did not end, and the package's own name if it failed without one of them.
	Failed, Skipped []string `json:",omitempty"`
}

// passed says whether nothing failed but what the row lacks.
func (r Result) passed(row Row) bool {
	if r.Down != "" {
		return false
	}
	for _, s := range r.Suites {
		if failed, _ := s.judge(row); len(failed) > 0 || len(s.Passed) == 0 {
			return false
		}
	}
	return len(r.Suites) > 0
}

// judge divides what failed by what the row lacks. A test that passes although the row is said to lack its rule has failed:
// the row is wrong.
func (o Outcome) judge(row Row) (failed, lacks []string) {
	for _, test := range o.Failed {
		if slices.Contains(row.Lacks, test) {
			lacks = append(lacks, test)
		} else {
			failed = append(failed, test)
		}
	}
	for _, test := range o.Passed {
		if slices.Contains(row.Lacks, test) {
			failed = append(failed, test+" passed")
		}
	}
	return failed, lacks
}

// outcome is the result in a few words.
func (r Result) outcome(row Row) string {
	if r.Down != "" {
		return "the pool did not come up: " + r.Down
	}
	var words []string
	for _, s := range r.Suites {
		failed, lacks := s.judge(row)
		text := fmt.Sprintf("%s %d passed", s.Package, len(s.Passed))
		for _, more := range []struct {
			what  string
			tests []string
		}{{"failed", failed}, {"of rules that this version lacks", lacks}, {"skipped", s.Skipped}} {
			if len(more.tests) > 0 {
				text += fmt.Sprintf(", %d %s (%s)", len(more.tests), more.what, strings.Join(more.tests, ", "))
			}
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}

// readRecord reads the record; without a file, nothing was run.
func readRecord(path string) (Record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what was run: %w", err)
	}
	record := Record{}
	if err := json.Unmarshal(text, &record); err != nil {
		return nil, fmt.Errorf("reading what was run: %s: %w; `git checkout` brings the last one back", path, err)
	}
	return record, nil
}

// write replaces the record, whole or not at all.
func (r Record) write(path string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err == nil {
		err = os.WriteFile(path+".new", append(text, '\n'), 0o644)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("writing what was run: %w", err)
	}
	return nil
}
