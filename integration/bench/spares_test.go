package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

// Jobs of another cluster, and runs without a process, are no part of a series. The order
// of the log's runs does not matter.
func TestHandovers(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	run := func(slot, job string, began, start, end int, lines ...string) harness.SlotRun {
		r := harness.SlotRun{Slot: slot, Run: harness.Run{Job: job, Began: at(began)}}
		for _, text := range lines {
			r.Lines = append(r.Lines, harness.Line{Time: at(began), Text: text})
		}
		if end > 0 {
			r.Lines = append(r.Lines, harness.Line{Time: at(start), Text: "Create_Process succeeded, pid=1"}, harness.Line{Time: at(end), Text: "Process exited, pid=1, status=0"})
		}
		return r
	}
	runs := []harness.SlotRun{
		run("slot1", "8.0", 0, 10, 20),
		run("slot1", "7.2", 300, 320, 400, "Binding: container payload-2 runs registry/a:1 already"),
		run("slot1", "7.0", 100, 110, 200),
		run("slot2", "7.1", 100, 120, 250, "Binding: container payload is to run registry/a:1"),
		run("slot2", "7.3", 260, 0, 0),
		run("slot2", "7.3", 500, 510, 520),
		run("slot2", "7.4", 530, 540, 550, "Binding: container payload is to run registry/a:1"),
	}
	const ms = time.Millisecond
	want := []handover{
		{slot: "slot1", before: 0, after: 2, gap: 120 * ms, period: 210 * ms, fresh: true},
		{slot: "slot2", before: 3, after: 4, gap: 20 * ms, period: 30 * ms},
	}
	got, broken := handoversOf(runs, 7)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(handover{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if broken != 1 {
		t.Errorf("%d broken runs, want 1", broken)
	}
}

func TestCountEvents(t *testing.T) {
	log := "000 (1.000.000) submitted\n...\n005 (1.000.000) ended\n...\n005 (1.001.000) ended\n\t005 (not one)\n"
	if n := count([]byte(log), harness.EventTerminated); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

func TestBurstTasks(t *testing.T) {
	lengths := []time.Duration{5 * time.Second, time.Second}
	tasks, counted := burstTasks(lengths, 8*time.Second, []string{"a", "b"})
	want := []task{
		{"sleep=3s", "a"}, {"sleep=3s", "b"},
		{"sleep=5s", "a"}, {"sleep=5s", "b"}, {"sleep=5s", "a"},
		{"sleep=1s", "b"}, {"sleep=1s", "a"}, {"sleep=1s", "b"}, {"sleep=1s", "a"},
		{"sleep=1s", "b"},
	}
	if diff := cmp.Diff(want, tasks, cmp.AllowUnexported(task{})); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	wantCounted := map[int]time.Duration{}
	for i := 2; i < 9; i++ {
		wantCounted[i] = lengths[i/5]
	}
	if diff := cmp.Diff(wantCounted, counted); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// A series tells by the jobs themselves whether the image was another one.
func TestAddBurst(t *testing.T) {
	r := &burstResults{ours: map[burst][]handover{}}
	hs := []handover{{before: 0, after: 1}, {before: 1, after: 2}, {before: 2, after: 3}}
	r.add(2, []task{{image: "a"}, {image: "a"}, {image: "b"}, {image: "b"}}, map[int]time.Duration{1: time.Second, 2: time.Second}, series{handovers: hs, broken: 3})
	want := map[burst][]handover{{time.Second, 2, true}: hs[1:2], {time.Second, 2, false}: hs[2:]}
	if diff := cmp.Diff(want, r.ours, cmp.AllowUnexported(burst{}, handover{})); diff != "" || r.broken != 3 {
		t.Errorf("%d broken, (-want +got):\n%s", r.broken, diff)
	}
}

// Two slots that start a job each six seconds run twenty in a minute, however many
// handovers were seen of each.
func TestJobsAMinute(t *testing.T) {
	c := crowd{slots: 2, series: series{handovers: []handover{{slot: "1", period: 6 * time.Second}, {slot: "1", period: 6 * time.Second}, {slot: "2", period: 6 * time.Second}}}}
	if got := c.jobsAMinute(); got != 20 {
		t.Errorf("%v jobs a minute, want 20", got)
	}
	if got := (crowd{slots: 2}).jobsAMinute(); got != 0 {
		t.Errorf("%v jobs a minute of none", got)
	}
}

func TestLists(t *testing.T) {
	got, err := listOf("0, 4,2", strconv.Atoi)
	if diff := cmp.Diff([]int{0, 4, 2}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := listOf("", time.ParseDuration); got != nil || err != nil {
		t.Errorf("an empty list is %v, %v", got, err)
	}
	for _, bad := range []string{"1,x", "-1", "2,2"} {
		if got, err := listOf(bad, strconv.Atoi); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
}

func sampleSpares() *spareResults {
	const ms = time.Millisecond
	hs := func(fresh bool, gaps ...int) []handover {
		var all []handover
		for _, gap := range gaps {
			d := time.Duration(gap) * ms
			all = append(all, handover{gap: d, period: 5*time.Second + d, fresh: fresh})
		}
		return all
	}
	b := &burstResults{
		lengths: []time.Duration{3 * time.Second, 500 * ms}, spares: []int{0, 2}, broken: 1,
		stock: map[time.Duration][]handover{3 * time.Second: hs(false, 1000), 500 * ms: hs(false, 1000, 1200)},
		ours: map[burst][]handover{
			{500 * ms, 0, false}: hs(false, 1500, 2000), {500 * ms, 2, false}: hs(true, 50, 60),
			{3 * time.Second, 0, false}: hs(false, 200), {3 * time.Second, 2, false}: hs(true, 70, 80, 60),
			{500 * ms, 0, true}: hs(false, 1600), {500 * ms, 2, true}: hs(false, 900),
			{3 * time.Second, 0, true}: hs(false, 300), // nothing with two spares
		},
	}
	crowdOf := func(side harness.Side, spares, gap int) crowd {
		return crowd{slots: 32, side: side, spares: spares, series: series{jobs: 4, handovers: hs(spares > 0, gap, gap)},
			cpu: usage{ofStarters: 200 * ms, ofMachine: 2 * time.Second}, calls: map[string]int{"patch": 2}, all: 12, pss: []int64{2048, 4096}}
	}
	ours := crowdOf(harness.Ours, 16, 1000)
	ours.cpu[ofContainers] = 40 * ms
	ours.series.cut = 6
	return &spareResults{
		when: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), machine: "a machine", bursts: b,
		crowds: []crowd{crowdOf(harness.Stock, 0, 1000), crowdOf(harness.Ours, 0, 7000), ours},
	}
}

func TestSpareTables(t *testing.T) {
	text := sampleSpares().tables()
	for _, want := range []string{
		"Measured on 2026-01-02, a machine, in one run.\n",
		"median, 9 of 10 (jobs) | after jobs of 0.5 s | after jobs of 3 s |\n|---|---|---|\n",
		"| stock starter, no container | 1.100, 1.200 (2) | 1.000, 1.000 (1) |\n",
		"| same image, K = 2 | 0.055, 0.060 (2) | 0.070, 0.080 (3) |\n",
		"| another image, K = 2 | 0.900, 0.900 (1) | — |\n",
		"| same image, K = 2 | 0.05 | 0.07 |\n",
		"| same image, K = 2 | 1.00 | 1.00 |\n",
		"After jobs of 3 s and longer, jobs that found a fresh container started within 0.070 s (median), 0.080 s (9 of 10), 0.080 s (all 3). Aim: 0.1 s. Runs of starters in which no job's process started and ended, not counted: 1.",
		"| 32 slots, stock starter, no container | 4 | 320.0 | 1.00 | 1.000 | 1.000 | — |\n",
		"| 32 slots, K = 0 | 4 | 160.0 | 0.50 | 7.000 | 7.000 | 0.00 |\n",
		"| 32 slots, K = 16 | 4 | 320.0 | 1.00 | 1.000 | 1.000 | 1.00 |\n",
		"With 32 slots and 16 spares, the ratio to stock is 1.00. Aim: 0.95.\n",
		"| 32 slots, stock starter, no container | 0.050 | — |",
		"| 32 slots, K = 16 | 0.050 | 0.010 |",
		"| 32 slots, K = 0 | 0.50 | 0.00 | 0.00 | 3.00 |\n",
		"| 32 slots, K = 0 | 2 | 3.0 | 4.0 |\n",
		"Jobs that had not ended after 4 minutes, and were removed: 32 slots, K = 16: 6 of 10 jobs.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestSpareCharts(t *testing.T) {
	dir := t.TempDir()
	if err := sampleSpares().writeCharts(dir); err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"spares.svg": {"after jobs of 0.5 s, median", "stock starter, no container, median", "another image"},
		"slots.svg":  {"stock starter, no container", "no spares", "no time between jobs"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		isXML(t, text)
		for _, want := range wants {
			if !bytes.Contains(text, []byte(want)) {
				t.Errorf("%s lacks %q", name, want)
			}
		}
	}
}

func isXML(t *testing.T, text []byte) {
	t.Helper()
	for decoder := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
