package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A run goes on with the rows that have no record.
func TestChoose(t *testing.T) {
	rows := []Row{{Kubernetes: "1.1", Node: containerd, Where: guest}, {Kubernetes: "1.2", Node: containerd, Where: guest}, {Kubernetes: "1.3", Node: containerd, Where: guest}}
	record := Record{"1.1 containerd guest": {Suites: []Outcome{{Failed: []string{"T"}}}}, "1.2 containerd guest": {Down: "no"}}
	for _, tc := range []struct {
		name  string
		again bool
		names []string
		want  []string
	}{
		{"what is left", false, nil, []string{"1.2", "1.3"}},
		{"all", true, nil, []string{"1.1", "1.2", "1.3"}},
		{"named", true, []string{"1.1", "1.3 containerd"}, []string{"1.1", "1.3"}},
		{"named, and known", false, []string{"1.1"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, r := range choose(rows, record, tc.again, tc.names) {
				got = append(got, r.Kubernetes)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	for _, tc := range []struct {
		name, events string
		want         Outcome
		passed       bool
		said         string
	}{
		{"passed", `{"Action":"start"}
{"Action":"run","Test":"T1"}
{"Action":"run","Test":"T1/inner"}
{"Action":"output","Test":"T1/inner","Output":"x\n"}
{"Action":"pass","Test":"T1/inner"}
{"Action":"pass","Test":"T1"}
{"Action":"run","Test":"T2"}
{"Action":"skip","Test":"T2"}
{"Action":"pass"}
`, Outcome{Package: "p", Passed: []string{"T1"}, Skipped: []string{"T2"}}, true, "  passed T1\n  skipped T2\n"},
		{"failed inside", `{"Action":"run","Test":"T1"}
{"Action":"run","Test":"T1/inner"}
{"Action":"output","Test":"T1/inner","Output":"    no\n"}
{"Action":"fail","Test":"T1/inner"}
{"Action":"fail","Test":"T1"}
{"Action":"run","Test":"T2"}
{"Action":"pass","Test":"T2"}
{"Action":"fail"}
`, Outcome{Package: "p", Passed: []string{"T2"}, Failed: []string{"T1"}}, false, "    no\n  passed T2\n"},
		{"ended early", `{"Action":"run","Test":"T1"}
{"Action":"pass","Test":"T1"}
{"Action":"run","Test":"T2"}
`, Outcome{Package: "p", Passed: []string{"T1"}, Failed: []string{"T2"}}, false, "  passed T1\n"},
		{"not built", `{"Action":"build-output","Output":"x.go: no\n"}
{"Action":"output","Output":"FAIL p\n"}
{"Action":"fail"}
`, Outcome{Package: "p", Failed: []string{"p"}}, false, "x.go: no\nFAIL p\n"},
		{"no test", `{"Action":"pass"}
`, Outcome{Package: "p"}, false, ""},
		{"no events", "pool: no guest is here\n", Outcome{Package: "p"}, false, "pool: no guest is here\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var said strings.Builder
			got, err := suite{pkg: "p"}.outcome(strings.NewReader(tc.events), &said)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if passed := (Result{Suites: []Outcome{got}}).passed(Row{}); passed != tc.passed {
				t.Errorf("passed: %v, want %v", passed, tc.passed)
			}
			if diff := cmp.Diff(tc.said, said.String()); diff != "" {
				t.Errorf("what it prints (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := (suite{}).outcome(strings.NewReader(strings.Repeat("x", maxEvent+1)), io.Discard); err == nil {
		t.Error("a line without end is no error")
	}
}

func TestRecordIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	if empty, err := readRecord(path); err != nil || len(empty) != 0 {
		t.Fatalf("without a file: %v, %v", empty, err)
	}
	want := Record{"a": {Date: "2020-01-02", Source: "abc", Seconds: 5, Node: Node{Kubelet: "v1"}, Suites: []Outcome{{Package: "p", Passed: []string{"T"}}}}}
	if err := want.write(path); err != nil {
		t.Fatal(err)
	}
	got, err := readRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestArguments(t *testing.T) {
	for _, tc := range []struct{ where, want string }{
		{guest, "-C integration test -json -tags pool -count=1 -timeout 20m -exec POOL in ./p -run T"},
		{host, "-C integration test -json -tags pool -count=1 -timeout 20m ./p -run T"},
	} {
		got := strings.Join(suite{"p", "T"}.arguments(Row{Where: tc.where}, "POOL"), " ")
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.where, got, tc.want)
		}
	}
	if got, want := strings.Join(Row{Kubernetes: "1.1", Node: "crun", Where: guest, Otherwise: []string{"--oci-runtime", "crun"}}.up(), " "), "up --condor 25.14 --kubernetes 1.1 --guest --oci-runtime crun"; got != want {
		t.Errorf("up: %q, want %q", got, want)
	}
}

// What a version lacks is no failure; a rule that it has after all is one, since the row says something else.
func TestLacks(t *testing.T) {
	row := Row{Lacks: []string{"T1"}}
	for _, tc := range []struct {
		name   string
		o      Outcome
		passed bool
		words  string
	}{
		{"lacks it", Outcome{Package: "p", Passed: []string{"T2"}, Failed: []string{"T1"}}, true, "p 1 passed, 1 of rules that this version lacks (T1)"},
		{"another fails", Outcome{Package: "p", Passed: []string{"T3"}, Failed: []string{"T1", "T2"}}, false, "p 1 passed, 1 failed (T2), 1 of rules that this version lacks (T1)"},
		{"has it", Outcome{Package: "p", Passed: []string{"T1", "T2"}}, false, "p 2 passed, 1 failed (T1 passed)"},
	} {
		r := Result{Suites: []Outcome{tc.o}}
		if got, words := r.passed(row), r.outcome(row); got != tc.passed || words != tc.words {
			t.Errorf("%s: %v, %q; want %v, %q", tc.name, got, words, tc.passed, tc.words)
		}
	}
}
