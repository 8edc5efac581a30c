package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

func (r Result) passed() bool {
	if r.Down != "" {
		return false
	}
	for _, s := range r.Suites {
		if len(s.Failed) > 0 || len(s.Passed) == 0 {
			return false
		}
	}
	return len(r.Suites) > 0
}

// outcome is the result in a few words.
func (r Result) outcome() string {
	if r.Down != "" {
		return "the pool did not come up: " + r.Down
	}
	var words []string
	for _, s := range r.Suites {
		text := fmt.Sprintf("%s %d passed", s.Package, len(s.Passed))
		if len(s.Failed) > 0 {
			text += fmt.Sprintf(", %d failed (%s)", len(s.Failed), strings.Join(s.Failed, ", "))
		}
		if len(s.Skipped) > 0 {
			text += fmt.Sprintf(", %d skipped (%s)", len(s.Skipped), strings.Join(s.Skipped, ", "))
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
