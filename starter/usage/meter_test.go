package usage

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/job"
	"podstarter/payload"
)

// reading is what reports say.
func reading(m *Meter) (p job.Process) {
	m.AddTo(&p)
	return p
}

// TestMeter: counters never go back, peaks stay, and a cgroup's word counts
// more than the process table's.
func TestMeter(t *testing.T) {
	m := NewMeter(Knobs{}, slog.New(slog.DiscardHandler))
	check := func(what string, want job.Usage) {
		t.Helper()
		want.IOWait = -1
		if got := reading(m).Usage; !cmp.Equal(want, got) {
			t.Errorf("%s (-want +got):\n%s", what, cmp.Diff(want, got))
		}
	}
	m.seen(payload.ContainerUsage{UserCPU: 5 * time.Second, SystemCPU: time.Second, RSS: 100 << 20, Processes: 3})
	m.seen(payload.ContainerUsage{UserCPU: 3 * time.Second, SystemCPU: time.Second, RSS: 50 << 20, Processes: 2}) // a child ended unreaped
	check("without a cgroup", job.Usage{UserCPU: 5 * time.Second, SystemCPU: time.Second, ImageBytes: 100 << 20, ResidentBytes: 100 << 20, Processes: 2})
	if reading(m).Cgroup {
		t.Error("nobody has seen a cgroup")
	}
	group := payload.CgroupUsage{UserCPU: 7 * time.Second, SystemCPU: 2 * time.Second, MemoryUsed: 60 << 20, MemoryCache: 30 << 20, MemoryPeak: 120 << 20,
		MemoryLimit: -1, ReadBytes: 4096, WriteBytes: 8192, Reads: 1, Writes: 2}
	m.seen(payload.ContainerUsage{RSS: 200 << 20, ImageSize: 900 << 20, MaxRSS: 10 << 20, Processes: 4, Cgroup: &group})
	io := job.IO{ReadBytes: 4096, WriteBytes: 8192, Reads: 1, Writes: 2}
	check("processes that share memory", job.Usage{UserCPU: 7 * time.Second, SystemCPU: 2 * time.Second, ImageBytes: 60 << 20, ResidentBytes: 60 << 20, Processes: 4, IO: &io})
	if !reading(m).Cgroup {
		t.Error("it has a cgroup")
	}
	group.UserCPU, group.MemoryUsed = 9*time.Second, 1<<20
	m.End(payload.Exit{UserCPU: 6 * time.Second, SystemCPU: time.Second, MaxRSS: 70 << 20, Cgroup: &group})
	check("a peak between two looks", job.Usage{UserCPU: 9 * time.Second, SystemCPU: 2 * time.Second, Processes: 4, ImageBytes: 70 << 20, ResidentBytes: 70 << 20, IO: &io})
	m.knobs.Peak = true
	check("the kernel's peak", job.Usage{UserCPU: 9 * time.Second, SystemCPU: 2 * time.Second, Processes: 4, ImageBytes: 90 << 20, ResidentBytes: 90 << 20, IO: &io})
	group.MemoryCache = 40 << 20 // more than at the look that found most of the payload's own
	check("the kernel's peak, with file cache that came later", job.Usage{UserCPU: 9 * time.Second, SystemCPU: 2 * time.Second, Processes: 4, ImageBytes: 80 << 20, ResidentBytes: 80 << 20, IO: &io})
	m.knobs.FileCache = true
	check("the kernel's peak with file cache", job.Usage{UserCPU: 9 * time.Second, SystemCPU: 2 * time.Second, Processes: 4, ImageBytes: 120 << 20, ResidentBytes: 70 << 20, IO: &io})
	m.knobs.Peak = false

	m.NextRun()
	check("before the next run", job.Usage{UserCPU: 9 * time.Second, SystemCPU: 2 * time.Second, Processes: 4, ImageBytes: 70 << 20, ResidentBytes: 70 << 20})
	m.seen(payload.ContainerUsage{UserCPU: time.Second, Processes: 1, Cgroup: &payload.CgroupUsage{MemoryUsed: 1, UserCPU: -1, SystemCPU: -1, ReadBytes: 100, WriteBytes: 100, Reads: -1, Writes: 5}})
	check("the next run", job.Usage{UserCPU: 10 * time.Second, SystemCPU: 2 * time.Second, ImageBytes: 70 << 20, ResidentBytes: 70 << 20, Processes: 1,
		IO: &job.IO{ReadBytes: 4196, WriteBytes: 8292, Reads: 1, Writes: 7}})
}

// TestMeterOverRuns: what a job used before its checkpoint counts, though the
// wrapper begins to count anew.
func TestMeterOverRuns(t *testing.T) {
	m := NewMeter(Knobs{}, slog.New(slog.DiscardHandler))
	exit := payload.Exit{UserCPU: 5 * time.Second, SystemCPU: time.Second, Cgroup: &payload.CgroupUsage{
		UserCPU: 6 * time.Second, SystemCPU: 2 * time.Second, ReadBytes: 10, WriteBytes: 20, Reads: 1, Writes: 2,
	}}
	m.End(exit)
	m.NextRun()
	m.seen(payload.ContainerUsage{UserCPU: time.Second, Cgroup: &payload.CgroupUsage{UserCPU: time.Second, ReadBytes: 5}})
	m.End(exit)
	m.NextRun()
	m.End(exit)
	want := job.Usage{UserCPU: 18 * time.Second, SystemCPU: 6 * time.Second, IOWait: -1,
		IO: &job.IO{ReadBytes: 30, WriteBytes: 60, Reads: 3, Writes: 6}}
	if got := reading(m).Usage; !cmp.Equal(want, got) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
}
