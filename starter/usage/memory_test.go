package usage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/payload"
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
				" (it grew faster than it could be looked at; request_memory was 512; try request_memory = 768)",
		},
		"the request is an expression, and less than the container had": {
			[]func(*memory){look(990, 0, 1000, 1000, time.Second)}, "RequestMemory = ImageSize / 1024\nImageSize = 102400",
			"Job has gone over cgroup memory limit of 1000 megabytes. Last measured usage: 1000 megabytes.  Consider resubmitting with a higher request_memory." +
				" (990 megabytes of it were the job's own and 0 megabytes file cache 1 s before; request_memory was 100; try request_memory = 1536)",
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
			if diff := cmp.Diff(tt.want, m.exhausted(ad, end)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
