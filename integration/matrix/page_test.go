package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of docs/admin/support.md")

// TestSupportPage compares the page with the record, in which nothing is but what was run.
func TestSupportPage(t *testing.T) {
	root := filepath.Join("..", "..")
	record, err := readRecord(filepath.Join(root, recordPath))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, r := range Rows {
		if known[r.Name()] {
			t.Errorf("two rows are called %q", r.Name())
		}
		known[r.Name()] = true
	}
	for name, result := range record {
		if !known[name] {
			t.Errorf("the record has a row %q that no longer exists", name)
		}
		if result.Date == "" || result.Source == "" || result.Down == "" && (result.Node.Kubelet == "" || len(result.Suites) == 0) {
			t.Errorf("the record of %q does not say what was run: %+v", name, result)
		}
	}
	page := filepath.Join(root, pagePath)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	intro, _, ok := strings.Cut(string(text), pageMark)
	if !ok {
		t.Fatalf("%s has no line %s", page, pageMark)
	}
	want := intro + pageMark + "\n" + table(Rows, record)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("the page does not match the record; write it with -update\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	rows := []Row{
		{Kubernetes: "1.1", Node: containerd, Where: guest},
		{Kubernetes: "1.2", Node: containerd, Where: guest, Otherwise: []string{"--gates", "A=true"}},
		{Kubernetes: "1.3", Node: containerd, Where: host},
		{Kubernetes: "1.4", Node: containerd, Where: host},
	}
	node := Node{APIServer: "v1.1.5", Kubelet: "v1.1.5", Runtime: "containerd://2.1.0", Kernel: "7.2", System: "Debian"}
	odd := node
	odd.APIServer = "v1.3.6"
	got := table(rows, Record{
		"1.1 containerd guest": {Date: "2020-01-02", Source: "abc", Node: node, Suites: []Outcome{
			{Package: "a", Passed: []string{"T1", "T2"}}, {Package: "b", Passed: []string{"T3"}, Failed: []string{"T4"}, Skipped: []string{"T5"}},
		}},
		"1.3 containerd host": {Date: "2020-01-03", Source: "abd", Node: odd, Suites: []Outcome{{Package: "a", Passed: []string{"T1"}}}},
		"1.4 containerd host": {Date: "2020-01-04", Source: "abe", Down: "no | kubelet\nat all"},
	})
	want := strings.ReplaceAll(`| Kubernetes | containers | not as by default here | node | tests | run on | at |
| --- | --- | --- | --- | --- | --- | --- |
| v1.1.5 | containerd 2.1.0 |  | guest: Debian, Linux 7.2 | a 2 passed; b 1 passed, 1 failed (T4), 1 skipped (T5) | 2020-01-02 | abc |
| 1.2 | containerd | '--gates A=true' | guest | not run |  |  |
| v1.1.5, API server v1.3.6 | containerd 2.1.0 |  | host: Debian, Linux 7.2 | a 1 passed | 2020-01-03 | abd |
| 1.4 | containerd |  | host | the pool did not come up: no \| kubelet at all | 2020-01-04 | abe |
`, "'", "`")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
