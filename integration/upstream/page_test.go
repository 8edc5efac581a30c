package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated part of docs/developer/upstream-tests.md")

// TestPage: the page has what the record says; each difference and each failure has a reason, and no reason is of what is gone.
func TestPage(t *testing.T) {
	rec, err := load("record.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Tests) == 0 {
		t.Fatal("record.json has no tests")
	}
	all, complaints := compare(rec)
	for _, c := range complaints {
		t.Error(c)
	}
	path := filepath.Join("..", "..", "docs", "developer", "upstream-tests.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), pageBegin)
	_, after, end := strings.Cut(rest, pageEnd)
	if !ok || !end {
		t.Fatalf("%s lacks one of the lines %s and %s", path, strings.TrimSpace(pageBegin), strings.TrimSpace(pageEnd))
	}
	want := before + pageBegin + page(rec, all) + pageEnd + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("the page does not match record and reasons; write it with -update\n%s", diff)
	}
}

// TestKindOf: what was not run never counts as passed, nor does what fails at times.
func TestKindOf(t *testing.T) {
	passed, failed, skipped, lost := Case{Passed: 1}, Case{Failed: 1}, Case{Skipped: 1}, Case{NotRun: 1}
	for _, tc := range []struct {
		name        string
		stock, ours Case
		want        kind
	}{
		{"both", passed, passed, bothPass},
		{"stock", passed, failed, onlyStock},
		{"ours skips", passed, skipped, onlyStock},
		{"ours is ended", passed, lost, onlyStock},
		{"ours lacks it", passed, Case{}, onlyStock},
		{"ours", failed, passed, onlyOurs},
		{"neither", failed, failed, neither},
		{"ours at times", passed, Case{Passed: 1, Failed: 1}, onlyStock},
		{"both at times", Case{Passed: 2, Failed: 1}, Case{Passed: 1, Failed: 1}, neither},
		{"skipped", skipped, skipped, notRun},
		{"ended", lost, lost, notRun},
		{"failed and skipped", failed, skipped, neither},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := kindOf(tc.stock, tc.ours); got != tc.want {
				t.Errorf("kindOf(%v, %v) = %d, want %d", tc.stock, tc.ours, got, tc.want)
			}
		})
	}
}

// TestReadCases: what the plugin writes of each way to end.
func TestReadCases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outcomes")
	lines := `{"case": "test_x.py::A::good", "when": "collect", "outcome": "", "why": ""}
{"case": "test_x.py::A::bad", "when": "collect", "outcome": "", "why": ""}
{"case": "test_x.py::A::setup", "when": "collect", "outcome": "", "why": ""}
{"case": "test_x.py::A::skip", "when": "collect", "outcome": "", "why": ""}
{"case": "test_x.py::A::end", "when": "collect", "outcome": "", "why": ""}
{"case": "test_x.py::A::late", "when": "collect", "outcome": "", "why": ""}
{"case": "test_x.py::A::good", "when": "setup", "outcome": "passed", "why": ""}
{"case": "test_x.py::A::good", "when": "call", "outcome": "passed", "why": ""}
{"case": "test_x.py::A::good", "when": "teardown", "outcome": "passed", "why": ""}
{"case": "test_x.py::A::bad", "when": "call", "outcome": "failed", "why": "assert 0"}
{"case": "test_x.py::A::bad", "when": "teardown", "outcome": "passed", "why": ""}
{"case": "test_x.py::A::setup", "when": "setup", "outcome": "failed", "why": "no pool"}
{"case": "test_x.py::A::skip", "when": "setup", "outcome": "skipped", "why": "no root"}
{"case": "test_x.py::A::end", "when": "call", "outcome": "passed", "why": ""}
{"case": "test_x.py::A::end", "when": "teardown", "outcome": "failed", "why": "left"}
{"case": "test_x.py::A::late", "when": "set`
	if err := os.WriteFile(path, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := readCases(path, "test_x", "killed")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Case{
		"A::good": {Passed: 1}, "A::bad": {Failed: 1, Why: "call: assert 0"}, "A::setup": {Failed: 1, Why: "setup: no pool"},
		"A::skip": {Skipped: 1, Why: "no root"}, "A::end": {Failed: 1, Why: "teardown: left"}, "A::late": {NotRun: 1, Why: "killed"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("readCases (-want +got):\n%s", diff)
	}
}

// TestExcluded: names and patterns.
func TestExcluded(t *testing.T) {
	for name, want := range map[string]bool{"test_docker": true, "test_dag_halt": true, "test_cif": false, "test_docker_more": false, "lib_chirp.run": false, "job_core_args_java.run": true, "job_dagman_large_dag.run": true} {
		if got := excluded(name) != ""; got != want {
			t.Errorf("%s is left out: %v, want %v", name, got, want)
		}
	}
}

// TestAdd: a second run of a test adds to the first, and keeps why it failed.
func TestAdd(t *testing.T) {
	rec := &Record{Outcomes: map[string]map[string]map[string]Outcome{}}
	put := func(c Case, add bool) {
		rec.put(result{test{"test_x", ours, asUser}, Outcome{Cases: map[string]Case{"a": c}}}, add)
	}
	put(Case{Failed: 1, Why: "lost"}, false)
	put(Case{Passed: 1}, true)
	if got := rec.Outcomes["test_x"][asUser][ours].Cases["a"]; got != (Case{Passed: 1, Failed: 1, Why: "lost"}) || got.passed() {
		t.Errorf("two runs: %+v", got)
	}
	put(Case{Passed: 1}, false)
	if got := rec.Outcomes["test_x"][asUser][ours].Cases["a"]; got != (Case{Passed: 1}) {
		t.Errorf("a run without -add: %+v", got)
	}
}
