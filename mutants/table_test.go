package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTable: each snippet is in its file exactly once, each test that should fail is in
// its package, and names are not used twice.
func TestTable(t *testing.T) {
	root, err := top()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, a := range areas {
		for _, m := range a.mutants {
			if m.Name == "" || names[m.Name] {
				t.Errorf("the name %q is used twice, or none", m.Name)
			}
			names[m.Name] = true
			text, err := os.ReadFile(filepath.Join(root, m.File))
			if err != nil {
				t.Errorf("%s: %v", m.Name, err)
				continue
			}
			if planted, err := m.plant(string(text)); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			} else if planted == string(text) {
				t.Errorf("%s changes nothing", m.Name)
			}
			if len(m.Tests) == 0 {
				t.Errorf("%s: what tests should notice?", m.Name)
			}
			for _, of := range m.Tests {
				if of.Run != "" && !hasTest(t, filepath.Join(root, of.Package), of.Run) {
					t.Errorf("%s: %s has no test %s", m.Name, of.Package, of.Run)
				}
			}
		}
	}
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`)

// hasTest tells whether -run would find a test in a package.
func hasTest(t *testing.T, dir, run string) bool {
	t.Helper()
	name, err := regexp.Compile(strings.Split(run, "/")[0])
	if err != nil {
		t.Error(err)
		return false
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range testFunction.FindAllStringSubmatch(string(text), -1) {
			if name.MatchString(match[1]) {
				return true
			}
		}
	}
	return false
}

func TestPlant(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		found      bool
	}{
		{"a := 1", "a := 2", true}, {"a := 3", "", false}, {"a := 1; a := 1", "", false}, {"", "", false},
	} {
		got, err := mutant{Old: "a := 1", New: "a := 2"}.plant(tt.text)
		if got != tt.want || (err == nil) != tt.found || err != nil && !errors.Is(err, errNotFound) {
			t.Errorf("%q: %q, %v", tt.text, got, err)
		}
	}
	if _, err := (mutant{New: "x"}).plant(""); !errors.Is(err, errNotFound) {
		t.Errorf("no snippet at all: %v", err)
	}
}

func TestFailures(t *testing.T) {
	const output = "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/part (0.00s)\n--- PASS: TestB (0.00s)\n--- FAIL: TestC (1.00s)\nFAIL\n"
	if got := strings.Join(failures(output), " "); got != "TestA TestC" {
		t.Error(got)
	}
}

func TestPick(t *testing.T) {
	every, err := pick("", nil)
	if err != nil || len(every) == 0 {
		t.Fatalf("%d mutants, %v", len(every), err)
	}
	one := every[0].Name
	if got, err := pick("", []string{one}); err != nil || len(got) != 1 || got[0].Name != one {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []struct {
		of    string
		names []string
	}{{"elsewhere", nil}, {"", []string{"no such mutant"}}, {"sandbox", []string{one}}} {
		if got, err := pick(bad.of, bad.names); err == nil {
			t.Errorf("%v: %v", bad, got)
		}
	}
}
