package job

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
)

func statistics(t *testing.T, knobsOf map[string]string, now time.Time) *Statistics {
	t.Helper()
	s, err := NewStatistics(knobs(knobsOf), now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func figures(s *Statistics, io *IO, now time.Time) map[string]int64 {
	ad := classads.NewAd()
	s.Publish(ad, io, now)
	got := map[string]int64{}
	for name := range ad.All() {
		got[name] = ad.IntOr(name, -1)
	}
	return got
}

// TestStatisticsWindow: figures older than the window leave the Recent values in
// steps of a quantum.
func TestStatisticsWindow(t *testing.T) {
	born := time.Unix(10_000, 0)
	at := func(seconds int64) time.Time { return born.Add(time.Duration(seconds) * time.Second) }
	s := statistics(t, nil, born)
	read := func(kib int64) *IO { return &IO{ReadBytes: kib << 10, Reads: kib, WriteBytes: 1023, Writes: -1} }
	for _, step := range []struct {
		second, kib                    int64
		lifetime, recentLifetime, want int64
	}{
		{0, 10, 0, 0, 10}, // the first call starts the clock
		{8, 20, 8, 8, 20},
		{240, 30, 240, 240, 30},
		{1199, 30, 1199, 1199, 30}, // five quanta, the first one with 20
		{1200, 31, 1200, 1200, 11}, // and now without it
		{1440, 31, 1440, 1200, 1},
		{1440, 32, 1440, 1200, 2},
		{90_000, 32, 90_000, 1200, 0},
		{90_001, 33, 90_001, 1200, 1},
	} {
		got := figures(s, read(step.kib), at(step.second))
		want := map[string]int64{
			"StatsLifetime": step.lifetime, "RecentStatsLifetime": step.recentLifetime,
			"BlockReads": step.kib, "RecentBlockReads": step.want, "BlockReadKbytes": step.kib, "RecentBlockReadKbytes": step.want,
			"BlockWrites": 0, "RecentBlockWrites": 0, "BlockWriteKbytes": 0, "RecentBlockWriteKbytes": 0,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("second %d (-want +got):\n%s", step.second, diff)
		}
	}
}

func TestStatisticsOfUnknownIO(t *testing.T) {
	got := figures(statistics(t, nil, time.Unix(0, 0)), nil, time.Unix(5, 0))
	if len(got) != 10 || got["BlockReads"] != 0 || got["RecentBlockWriteKbytes"] != 0 {
		t.Errorf("%v", got)
	}
}

func TestStatisticsToPublish(t *testing.T) {
	for text, want := range map[string]publication{
		"DEFAULT": {1, true}, "NONE": {}, "": {}, "SCHEDD:2": {}, "all": {1, true}, "starter:2!R": {2, false},
		"SCHEDD:2, STARTER:0": {0, true}, "ALL:3 STARTER:NONE": {}, "DEFAULT:R": {1, true}, "STARTER:x?": {1, true},
	} {
		if got := parsePublication(text); got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
	io := &IO{ReadBytes: 2048, Reads: 3}
	verbose := figures(statistics(t, map[string]string{"STATISTICS_TO_PUBLISH": "STARTER:2", "STATISTICS_WINDOW_SECONDS": "600", "STATISTICS_WINDOW_QUANTUM_STARTER": "60"}, time.Unix(0, 0)), io, time.Unix(61, 0))
	for name, want := range map[string]int64{"RecentWindowMax": 600, "BlockReadBytes": 2048, "RecentBlockReadBytes": 2048, "StatsLastUpdateTime": 61, "RecentStatsTickTime": 61} {
		if verbose[name] != want {
			t.Errorf("%s is %d, want %d", name, verbose[name], want)
		}
	}
	if none := figures(statistics(t, map[string]string{"STATISTICS_TO_PUBLISH": "NONE"}, time.Unix(0, 0)), io, time.Unix(1, 0)); len(none) != 0 {
		t.Errorf("%v", none)
	}
	bare := figures(statistics(t, map[string]string{"STATISTICS_TO_PUBLISH": "STARTER:!R"}, time.Unix(0, 0)), io, time.Unix(1, 0))
	for name := range bare {
		if strings.HasPrefix(name, "Recent") {
			t.Errorf("%s is published, although the knob leaves it out", name)
		}
	}
	if bare["BlockReadKbytes"] != 2 || len(bare) != 5 {
		t.Errorf("%v", bare)
	}
}

func FuzzPublication(f *testing.F) {
	f.Add("SCHEDD:2, STARTER:0!RDZ")
	f.Fuzz(func(t *testing.T, text string) {
		if p := parsePublication(text); p.level < 0 || p.level > 3 {
			t.Errorf("%q is %+v", text, p)
		}
	})
}
