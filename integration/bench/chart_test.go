package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// sampleResults are figures of the right shape.
func sampleResults() *results {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rowOf := func(gap time.Duration) row {
		r := row{calls: map[string]int{"patch": 3}}
		for i := range 3 {
			at := start.Add(time.Duration(i) * gap)
			r.runs = append(r.runs, harness.Run{Began: at, Ended: at.Add(gap), Phases: map[string]time.Duration{harness.PhaseBind: gap / 2}, PhaseOrder: []string{harness.PhaseBind},
				Lines: []harness.Line{{Time: at, Text: "Create_Process succeeded, pid=1"}, {Time: at.Add(gap / 10), Text: "Process exited, pid=1, status=0"}}})
		}
		return r
	}
	some := []time.Duration{100 * time.Millisecond, 120 * time.Millisecond, 300 * time.Millisecond}
	return &results{when: start, machine: "a machine", bare: some, quiet: turns{some, some}, kept: turns{same: some}, polling: turns{same: some}, pollingRow: turns{other: some},
		stock: rowOf(time.Second), fresh: rowOf(2 * time.Second), reused: rowOf(200 * time.Millisecond), memory: map[string]int64{harness.WrapperComm: 5 << 10}}
}

func TestTables(t *testing.T) {
	text := sampleResults().tables()
	for _, want := range []string{
		"| ours, quiet pod, another image | 3 | 0.100 | 0.120 | 0.300 | 0.300 | 1.00 |",
		"| ours, container kept | 2 | 0.180 | 0.180 | 0.180 | 0.180 | 0.20 |",
		"| fresh container | 1.00 | 0.00 | 0.00 |",
		"| our wrapper | 5.0 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %s in\n%s", want, text)
		}
	}
}

func TestChartIsAnImage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chart.svg")
	if err := sampleResults().writeChart(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"<svg", "containerd alone (3)", "stock starter, no container (2)"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the chart lacks %q", want)
		}
	}
}
