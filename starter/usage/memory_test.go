package usage

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/payload"
	"podstarter/payload/memcg"
)

func TestOutOfMemorySays(t *testing.T) {
	const mebibyte = 1 << 20
	end := time.Date(2026, 5, 1, 12, 0, 10, 0, time.UTC)
	look := func(own, cache, peak, limit int64, before time.Duration) func(*memory) {
		return func(m *memory) {
			m.see(payload.CgroupUsage{MemoryUsed: own * mebibyte, MemoryCache: cache * mebibyte, MemoryPeak: peak * mebibyte, MemoryLimit: limit * mebibyte}, end.Add(-before))
		}
	}
	unlimited := func(m *memory) {
		m.see(payload.CgroupUsage{MemoryUsed: 700 * mebibyte, MemoryCache: -1, MemoryPeak: 700 * mebibyte, MemoryLimit: -1}, end.Add(-time.Second))
	}
	tests := map[string]struct {
		looks []func(*memory)
		ad    string
		want  string
	}{
		"grew over several looks": {
			[]func(*memory){look(100, 50, 150, 512, 8*time.Second), look(480, 20, 505, 512, 3*time.Second), look(1, 3, 512, 512, 0)}, "RequestMemory = 500",
			"Job has gone over cgroup memory limit of 512 megabytes. Last measured usage: 512 megabytes.  Consider resubmitting with a higher request_memory." +
				" (480 megabytes of it were the job's own and 20 megabytes file cache 3 s before; request_memory was 500; try request_memory = 768)",
		},
		"grew between two looks": {
			[]func(*memory){look(1, 1, 2, 512, 4*time.Second), look(1, 3, 512, 512, 0)}, "RequestMemory = 512",
			"Job has gone over cgroup memory limit of 512 megabytes. Last measured usage: 512 megabytes.  Consider resubmitting with a higher request_memory." +
				" (it grew faster than it could be looked at, and had used 2 megabytes 4 s before; request_memory was 512; try request_memory = 768)",
		},
		"the request is an expression, and less than the container had": {
			[]func(*memory){look(990, 0, 1000, 1000, time.Second)}, "RequestMemory = ImageSize / 1024\nImageSize = 102400",
			"Job has gone over cgroup memory limit of 1000 megabytes. Last measured usage: 1000 megabytes.  Consider resubmitting with a higher request_memory." +
				" (990 megabytes of it were the job's own 1 s before; request_memory was 100; try request_memory = 1536)",
		},
		"a container without a limit": {
			[]func(*memory){unlimited}, "",
			"Job has encountered an out-of-memory event. (700 megabytes of it were the job's own 1 s before; try request_memory = 1152)",
		},
		"nothing is known": {
			nil, "RequestMemory = undefined",
			"Job has encountered an out-of-memory event.",
		},
		"a request that no machine has": {
			nil, "RequestMemory = 9223372036854775807",
			"Job has encountered an out-of-memory event. (request_memory was 9223372036854775807)",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ad, err := classads.ParseOld(tt.ad)
			if err != nil {
				t.Fatal(err)
			}
			m := noMemory()
			for _, l := range tt.looks {
				l(&m)
			}
			if diff := cmp.Diff(tt.want, m.exhausted(ad, end, 0)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWatchedMemory: what a hold says when the memory was watched until the kill. No figure
// that was not measured is in it, and none is further from the truth than it says.
func TestWatchedMemory(t *testing.T) {
	const mebibyte = 1 << 20
	killed := time.Date(2026, 5, 1, 12, 0, 10, 0, time.UTC)
	const (
		sentence = "Job has gone over cgroup memory limit of 512 megabytes. Last measured usage: 512 megabytes.  Consider resubmitting with a higher request_memory. "
		request  = "; request_memory was 500; try request_memory = 768)"
	)
	figures := func(anon, shared, cache int64) memcg.Figures {
		f := memcg.None()
		f.Anon, f.Shared, f.Cache = anon*mebibyte, shared*mebibyte, cache*mebibyte
		return f
	}
	look := func(before time.Duration, f memcg.Figures) memcg.Look {
		return memcg.Look{At: killed.Add(-before), Figures: f}
	}
	base := figures(6, 0, 4)
	whole := memcg.Evidence{End: killed, Peak: 512 * mebibyte, Limit: 512 * mebibyte, Base: base, OOMKills: 2}
	with := func(l memcg.Look, change func(*memcg.Evidence)) memcg.Evidence {
		e := whole
		e.Last = l
		if change != nil {
			change(&e)
		}
		return e
	}
	swapped := figures(480, 0, 20)
	swapped.Swap, swapped.Kernel = 300*mebibyte, 60*mebibyte
	tests := map[string]struct {
		found memcg.Evidence
		known int64 // the limit that the backend knows
		want  string
	}{
		"grew slowly":                             {with(look(12*time.Millisecond, figures(496, 0, 10)), nil), 0, sentence + "(490 megabytes of it were the job's own and 10 megabytes file cache 12 ms before" + request},
		"hardly any file cache":                   {with(look(2*time.Second, figures(496, 0, 0)), nil), 0, sentence + "(490 megabytes of it were the job's own 2 s before" + request},
		"shared memory":                           {with(look(0, figures(6, 490, 12)), nil), 0, sentence + "(490 megabytes of it were the job's own (490 megabytes in shared memory, /dev/shm for example) and 12 megabytes file cache when it was killed" + request},
		"page cache":                              {with(look(time.Millisecond, figures(26, 0, 484)), nil), 0, sentence + "(20 megabytes of it were the job's own and 484 megabytes file cache 1 ms before" + request},
		"swap, and the kernel's own":              {with(look(time.Millisecond, swapped), nil), 0, sentence + "(474 megabytes of it were the job's own and 20 megabytes file cache and 60 megabytes the kernel's for it 1 ms before, with 300 megabytes more swapped out; request_memory was 500; try request_memory = 1280)"},
		"one leap":                                {with(look(40*time.Millisecond, figures(16, 0, 4)), nil), 0, sentence + "(it grew faster than it could be looked at, and had used 20 megabytes 40 ms before" + request},
		"one leap from nothing":                   {with(look(40*time.Millisecond, figures(0, 0, 0)), nil), 0, sentence + "(it grew faster than it could be looked at, and had used less than 1 megabyte 40 ms before" + request},
		"one leap, and only the dead were seen":   {with(look(0, figures(100, 0, 4)), nil), 0, sentence + "(it grew faster than it could be looked at" + request},
		"in its first second, the kernel's peak":  {with(look(0, figures(0, 0, 0)), nil), 0, sentence + "(it grew faster than it could be looked at" + request},
		"in its first second, and all is gone":    {memcg.Evidence{Last: memcg.Look{Figures: memcg.None()}, End: killed, Peak: -1, Limit: -1, OOMKills: -1, Base: base}, 512 * mebibyte, "Job has gone over cgroup memory limit of 512 megabytes.  Consider resubmitting with a higher request_memory. (it was killed before anybody could look at its memory" + request},
		"nothing at all is known":                 {memcg.Evidence{Last: memcg.Look{Figures: memcg.None()}, End: killed, Peak: -1, Limit: -1, OOMKills: -1, Base: base}, 0, "Job has encountered an out-of-memory event. (request_memory was 500; try request_memory = 768)"},
		"the pod's limit":                         {with(look(3*time.Millisecond, figures(296, 0, 10)), func(e *memcg.Evidence) { e.Peak, e.Elsewhere = 310*mebibyte, true }), 0, "Job has encountered an out-of-memory event. (its pod or its machine ran out of memory when the job had used 310 megabytes, less than its own limit of 512 megabytes; 290 megabytes of it were the job's own and 10 megabytes file cache 3 ms before; request_memory was 500)"},
		"the limit that was in force at the kill": {with(look(3*time.Millisecond, figures(496, 0, 10)), nil), 256 * mebibyte, sentence + "(490 megabytes of it were the job's own and 10 megabytes file cache 3 ms before" + request},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ad, err := classads.ParseOld("RequestMemory = 500")
			if err != nil {
				t.Fatal(err)
			}
			m := noMemory()
			m.watched(tt.found)
			got := m.exhausted(ad, killed.Add(time.Minute), tt.known)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(got, " 0 megabytes") || strings.Contains(got, "(0 megabytes") {
				t.Error("it says that nothing was used")
			}
			if is, _ := m.killed(); is != (tt.found.OOMKills > 0) || m.withinLimit() != (name == "the pod's limit") {
				t.Errorf("killed: %t; within its limit: %t", is, m.withinLimit())
			}
		})
	}
}

// TestMemoryOfTheKilled: usage reports what a job had when it was killed, though no answer of
// the wrapper told of it.
func TestMemoryOfTheKilled(t *testing.T) {
	f := memcg.None()
	f.Anon = 500 << 20
	base := memcg.None()
	base.Anon = 5 << 20
	m := NewMeter(Knobs{}, slog.New(slog.DiscardHandler))
	m.seen(payload.ContainerUsage{Cgroup: &payload.CgroupUsage{MemoryUsed: 3 << 20, MemoryPeak: 4 << 20, MemoryLimit: -1}})
	m.memory.watched(memcg.Evidence{Last: memcg.Look{At: time.Now(), Figures: f}, Base: base, Peak: 512 << 20, Limit: 512 << 20, OOMKills: 1})
	if got := reading(m).Usage.ResidentBytes; got != 495<<20 || !m.KernelKilled() {
		t.Errorf("%d bytes, killed %t", got, m.KernelKilled())
	}
	m.NextRun()
	if m.KernelKilled() {
		t.Error("the next run counts as killed")
	}
}

// TestRemarks: the log says what slowed the job down, and nothing if nothing did.
func TestRemarks(t *testing.T) {
	for name, tt := range map[string]struct {
		group *payload.CgroupUsage
		want  []string
	}{
		"nothing known":  {nil, nil},
		"nothing":        {&payload.CgroupUsage{Throttled: -1, MemoryHigh: -1, PidsRefused: -1, Periods: 100}, nil},
		"the CPU limit":  {&payload.CgroupUsage{Periods: 100, Throttled: 7, ThrottledCPU: 1234567 * time.Microsecond}, []string{"in 7 of 100 periods, by 1.235s"}},
		"everything":     {&payload.CgroupUsage{Periods: 9, Throttled: 1, MemoryHigh: 3, PidsRefused: 4}, []string{"in 1 of 9 periods", "down 3 times", "thread 4 times"}},
		"the pids limit": {&payload.CgroupUsage{PidsRefused: 4}, []string{"thread 4 times"}},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			m := NewMeter(Knobs{}, slog.New(slog.NewTextHandler(&said, nil)))
			m.End(payload.Exit{Cgroup: tt.group})
			m.Remark()
			if lines := strings.Count(said.String(), "\n"); lines != len(tt.want) {
				t.Errorf("%d lines: %s", lines, &said)
			}
			for _, want := range tt.want {
				if !strings.Contains(said.String(), want) {
					t.Errorf("%q is not in %s", want, &said)
				}
			}
		})
	}
}
