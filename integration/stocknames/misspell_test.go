package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"podstarter/integration/stocknames/cppnames"
	"podstarter/integration/stocknames/shown"
)

// TestMisspell: a test that looks at the name notices, one that only says it does not.
func TestMisspell(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range ours {
		write(d+"/x.go", "package x\n")
	}
	write("go.mod", "module podstarter\n\ngo 1.24\n")
	write("condor/a/a.go", "package a\n\nfunc Knobs() []string { return []string{\"LOOKED_AT\", `only_said`, \"LOOKED_AT_TOO\"} }\n")
	write("condor/a/a_test.go", `package a

import "testing"

func TestLooks(t *testing.T) {
	if Knobs()[0] != "LOOKED_AT" || Knobs()[2] != "LOOKED_AT_TOO" {
		t.Error("lost")
	}
}

func TestSays(t *testing.T) { t.Log("ONLY_SAID") }
`)
	row := func(text, test string) shown.Row {
		return shown.Row{Name: shown.Name{Kind: cppnames.Knob, Text: text}, Tests: []shown.Test{{Package: "condor/a", Name: test}}}
	}
	byCase := row("BY_CASE", "TestLooks")
	byCase.Cases = []string{"s/c"}
	rows := []shown.Row{
		row("LOOKED_AT", "TestLooks"), row("ONLY_SAID", "TestSays"), row("NO_LITERAL", "TestSays"), byCase, row("OTHER", "TestSays"),
		{Name: shown.Name{Kind: cppnames.Knob, Text: "LOOKED_AT_TOO"}, Tests: []shown.Test{{Package: "integration/e2e", Name: "TestPool"}}},
	}
	var said strings.Builder
	err := misspell(t.Context(), dir, rows, regexp.MustCompile("_"), &said)
	want := "knob LOOKED_AT: noticed by condor/a\nknob ONLY_SAID: NOT NOTICED\nknob NO_LITERAL: no literal of our code is the name alone\n" +
		"knob LOOKED_AT_TOO: only tests with a pool name it\n"
	if said.String() != want || err == nil || !strings.HasPrefix(err.Error(), "1 misspelt names") {
		t.Errorf("%v, and it says\n%s", err, said.String())
	}
}
