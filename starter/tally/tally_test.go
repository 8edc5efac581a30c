package tally

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/starter/journal"
)

func TestAdd(t *testing.T) {
	var got Totals
	for _, e := range []journal.Event{
		{Kind: journal.JobBegins}, {Kind: journal.JobBegins},
		{Kind: journal.ImageBound, How: "pulled", Seconds: 1.5, Fetched: 1},
		{Kind: journal.ImageBound, How: "pulled", Seconds: 1000},
		{Kind: journal.ImageBound, How: "made", Seconds: 9, Copied: 7, CopiedBytes: 4000}, {Kind: journal.ImageBound, How: "made", Seconds: 2, Copied: 1, CopiedBytes: 500},
		{Kind: journal.ImageBound}, // without a container
		{Kind: journal.JobEnds, Outcome: journal.Succeeded, Seconds: 9, Ran: 5, CPU: 4, Started: true, Calls: map[string]int64{"patch 200": 1, "watch none": 2}},
		{Kind: journal.JobEnds, Outcome: journal.Held, Code: 35, Blame: "user", Cause: "ErrImagePull", Seconds: 1},
		{Kind: journal.JobEnds, Outcome: journal.Requeued, Code: 1021, Blame: "site", Started: true, Cause: "Evicted"},
		{Kind: journal.JobEnds, Outcome: "whatever", Calls: map[string]int64{"patch 200": 1}},
		{Kind: journal.Checked, Calls: map[string]int64{"get 403": 1}},
	} {
		got.Add(e)
	}
	pulled := Times{Count: 2, Sum: 1001.5}
	pulled.Class[4] = 1
	fetches := Times{Count: 1, Sum: 1}
	fetches.Class[3] = 1
	made := Times{Count: 2, Sum: 11}
	made.Class[4], made.Class[6] = 1, 1
	copies := Times{Count: 2, Sum: 8}
	copies.Class[3], copies.Class[6] = 1, 1
	want := Totals{
		Begun: 2, Ended: map[journal.Outcome]int64{journal.Succeeded: 1, journal.Held: 1, journal.Requeued: 1, journal.Lost: 1}, Active: 10, Ran: 5, CPU: 4,
		Bindings: map[payload.How]Times{payload.Pulled: pulled, payload.Made: made}, Fetches: fetches, Copies: copies, CopiedBytes: 4500,
		Failures: map[string]int64{"binding|user|ErrImagePull": 1, "running|site|Evicted": 1},
		Codes:    map[string]int64{"held|35": 1, "requeued|1021": 1},
		Calls:    map[string]int64{"patch|200": 2, "watch|none": 2, "get|403": 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCumulative: Prometheus's classes contain all shorter ones, and not what is longer than
// the last.
func TestCumulative(t *testing.T) {
	var times Times
	for _, s := range []float64{-1, 0.05, 0.1, 0.11, 900, 901, 1e9} {
		times.add(s)
	}
	got := times.Cumulative()
	if got[0.1] != 3 || got[0.25] != 4 || got[300] != 4 || got[900] != 5 || times.Count != 7 {
		t.Errorf("%d, %v", times.Count, got)
	}
}

// TestFewLabels: whatever a journal says, there are few series, and no count is lost before
// that.
func TestFewLabels(t *testing.T) {
	var got Totals
	const n = 1000
	for i := range n {
		got.Add(journal.Event{Kind: journal.JobEnds, Outcome: journal.Requeued, Code: i + 1, Blame: "site", Cause: fmt.Sprint("Reason", i), Calls: map[string]int64{fmt.Sprint("get ", i): 1}})
		got.Add(journal.Event{Kind: journal.JobEnds, Outcome: journal.Held, Blame: "site", Cause: "x|y\"}\n\xff" + fmt.Sprint(i)})
	}
	sum := func(m map[string]int64) (sum int64) {
		for key, n := range m {
			if labels, ok := Labels(key, strings.Count(key, "|")+1); !ok {
				t.Errorf("labels %q", labels)
			}
			sum += n
		}
		return sum
	}
	for name, m := range map[string]map[string]int64{"failures": got.Failures, "codes": got.Codes, "calls": got.Calls} {
		if len(m) > most+4 {
			t.Errorf("%d series of %s", len(m), name)
		}
		want := int64(n)
		if name == "failures" {
			want = 2 * n
		}
		if s := sum(m); s != want {
			t.Errorf("%d %s, want %d", s, name, want)
		}
	}
	got.Add(journal.Event{Calls: map[string]int64{"x|y\"}\n 200": 1}})
	sum(got.Calls)
	for i := range n { // more verbs than there are
		got.Add(journal.Event{Calls: map[string]int64{fmt.Sprint("verb", i, " 200"): 1}})
	}
	if len(got.Calls) > 2*most {
		t.Errorf("%d series of calls", len(got.Calls))
	}
}

func TestSnapshot(t *testing.T) {
	dir := t.TempDir()
	want := Snapshot{Slots: 3, Running: 1, Version: "v1", Totals: Totals{Begun: 1, Ended: map[journal.Outcome]int64{journal.Held: 1}}}
	for range 2 {
		if err := want.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	path := filepath.Join(dir, file)
	for name, spoil := range map[string]func() error{
		"long":    func() error { return os.WriteFile(path, make([]byte, maxFile+1), 0o600) },
		"garbage": func() error { return os.WriteFile(path, []byte("{"), 0o600) },
		"a FIFO":  func() error { return unix.Mkfifo(path, 0o600) },
		"a link":  func() error { return os.Symlink("/etc/hostname", path) },
		"nothing": func() error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(path)
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
			if s, err := Read(dir); err == nil {
				t.Errorf("read %+v", s)
			}
		})
	}
}

func TestStates(t *testing.T) {
	now := time.Now()
	later, earlier := now.Add(time.Minute), now.Add(-time.Minute)
	for name, tt := range map[string]struct {
		s    Snapshot
		want States
	}{
		"idle":             {Snapshot{Slots: 3}, States{Idle: 3}},
		"busy":             {Snapshot{Slots: 3, Running: 2}, States{Busy: 2, Idle: 1}},
		"more than may be": {Snapshot{Slots: 3, Running: 5}, States{Busy: 3}}, // a starter that is just leaving
		"resting":          {Snapshot{Slots: 3, Running: 1, Rests: []time.Time{later, earlier}}, States{Busy: 1, Resting: 1, Idle: 1}},
		"all rest":         {Snapshot{Slots: 2, Running: 1, Rests: []time.Time{later, later}}, States{Busy: 1, Resting: 1}},
		"sick":             {Snapshot{Slots: 3, Running: 1, Sick: later, Rests: []time.Time{later}}, States{Busy: 1, Offline: 2}},
		"was sick":         {Snapshot{Slots: 3, Sick: earlier}, States{Idle: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.s.States(now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
