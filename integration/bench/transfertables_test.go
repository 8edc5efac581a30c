package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

func TestTransferTables(t *testing.T) {
	of := func(wall, starter time.Duration, peak int64) trip {
		m := moved{wall: wall, starter: starter, shadow: 2 * starter}
		return trip{ways: [ways]moved{m, {wall: 2 * wall, starter: 2 * starter, shadow: starter}}, peak: peak}
	}
	r := &transferResults{
		when: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), machine: "a machine", smaller: 20, broken: 2, loads: []load{{name: "large", title: "one file", files: 1, bytes: 2e9}},
		trips: map[string]map[harness.Side][]trip{"large": {
			harness.Stock: {of(9*time.Second, 4*time.Second, 2048), of(8*time.Second, 4*time.Second, 1024), of(time.Second, 4*time.Second, 4096)},
			harness.Ours:  {of(4*time.Second, time.Second, 1024), of(4*time.Second, time.Second, 1024), of(4*time.Second, time.Second, 1024)},
		}},
	}
	want := `Measured on 2026-01-02, a machine, 3 rounds, with loads that are 20 times smaller. Medians, in brackets the least and the most. Jobs that went wrong, and were run again: 2.

| wall time of the transfer, s | way | stock | ours | stock / ours |
|---|---|---|---|---|
| one file | input | 8.000 (1.000–9.000) | 4.000 (4.000–4.000) | 2.00 |
| one file | output | 16.000 (2.000–18.000) | 8.000 (8.000–8.000) | 2.00 |

| CPU time of the starter, s | way | stock | ours | stock / ours |
|---|---|---|---|---|
| one file | input | 4.000 (4.000–4.000) | 1.000 (1.000–1.000) | 4.00 |
| one file | output | 8.000 (8.000–8.000) | 2.000 (2.000–2.000) | 4.00 |

| CPU time of the shadow, s | way | stock | ours | stock / ours |
|---|---|---|---|---|
| one file | input | 8.000 (8.000–8.000) | 2.000 (2.000–2.000) | 4.00 |
| one file | output | 4.000 (4.000–4.000) | 1.000 (1.000–1.000) | 4.00 |

| CPU time of the starter, s per GB | way | stock | ours |
|---|---|---|---|
| one file | input | 2.00 | 0.50 |
| one file | output | 4.00 | 1.00 |

| peak resident memory of the starter, MiB | stock | ours |
|---|---|---|
| one file | 2.0 (1.0–4.0) | 1.0 (1.0–1.0) |
`
	if diff := cmp.Diff(want, r.tables()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLoads writes the loads of a run that is a thousand times smaller.
func TestLoads(t *testing.T) {
	for _, l := range loads(1000) {
		if l.files == 0 {
			continue
		}
		dir := t.TempDir()
		if err := l.make(dir); err != nil {
			t.Fatal(err)
		}
		if err := l.check(dir); err != nil {
			t.Error(err)
		}
		f, err := os.OpenFile(l.path(dir, l.files-1), os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt([]byte{0, 1, 2, 3}, l.bytes/2)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := l.check(dir); err == nil || !strings.Contains(err.Error(), "not what they were") {
			t.Errorf("%s: with one file changed, the result is %v", l.title, err)
		}
		l.files++
		if err := l.check(dir); err == nil || !strings.Contains(err.Error(), "came back") {
			t.Errorf("%s: with one file missing, the result is %v", l.title, err)
		}
	}
}

func TestMoments(t *testing.T) {
	seen := time.Now()
	at := func(stamp string, after time.Duration) moment {
		return momentOf(harness.Event{Stamp: stamp}, seen.Add(after))
	}
	for _, c := range []struct {
		name           string
		earlier, later moment
		want           time.Duration
	}{
		{"by the shadow's clock", at("2026-11-21 12:00:00.900", 0), at("2026-11-21 12:00:01.100", time.Minute), 200 * time.Millisecond},
		{"in no time", at("2026-11-21 12:00:00.900", 0), at("2026-11-21 12:00:00.900", time.Minute), shortest},
		{"whole seconds", at("2026-11-21 12:00:00", 0), at("2026-11-21 12:00:01", time.Minute), time.Minute},
		{"one of them in whole seconds", at("2026-11-21 12:00:00", 0), at("2026-11-21 12:00:01.100", time.Minute), time.Minute},
		{"no beginning", moment{}, at("2026-11-21 12:00:01.100", 0), 0},
	} {
		if got := c.later.since(c.earlier); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
