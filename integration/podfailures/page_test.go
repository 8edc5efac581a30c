package podfailures

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated part of docs/operator/failures.md")

// TestFailuresPage compares the page with the table and the record.
func TestFailuresPage(t *testing.T) {
	record, err := Record()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, r := range Rows {
		if known[r.Name] {
			t.Errorf("two rows are called %q", r.Name)
		}
		known[r.Name] = true
		if m, ok := record[r.Name]; !ok || m.Took == "" {
			t.Errorf("row %q was never measured; run the pool test with -record", r.Name)
		}
	}
	for name := range record {
		if !known[name] {
			t.Errorf("the record has a row %q that no longer exists", name)
		}
	}
	page := filepath.Join("..", "..", "docs", "operator", "failures.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Replace(string(text), Table(Rows, record))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("the page does not match table and record; write it with: go -C integration test ./podfailures -run TestFailuresPage -update\n%s", diff)
	}
}
