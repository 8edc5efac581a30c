package main

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/job"
	"podstarter/payload"
)

// TestMeter: counters never go back, peaks stay, and a cgroup's word on CPU
// counts more than the process table's.
func TestMeter(t *testing.T) {
	m := meter{log: slog.New(slog.DiscardHandler)}
	m.seen(payload.ContainerUsage{UserCPU: 5 * time.Second, SystemCPU: time.Second, RSS: 100 << 20, Processes: 3})
	m.seen(payload.ContainerUsage{UserCPU: 3 * time.Second, SystemCPU: time.Second, RSS: 50 << 20, Processes: 2}) // a child ended unreaped
	if got, want := m.usage(), (job.Usage{UserCPU: 5 * time.Second, SystemCPU: time.Second, IOWait: -1, ImageBytes: 100 << 20, ResidentBytes: 100 << 20, Processes: 2}); !cmp.Equal(want, got) {
		t.Errorf("without a cgroup (-want +got):\n%s", cmp.Diff(want, got))
	}
	m.end(payload.Exit{UserCPU: 6 * time.Second, SystemCPU: time.Second, MaxRSS: 10 << 20, Cgroup: &payload.CgroupUsage{
		UserCPU: 9 * time.Second, SystemCPU: 2 * time.Second,
		ReadBytes: 4096, WriteBytes: 8192, Reads: 1, Writes: 2,
	}})
	want := job.Usage{UserCPU: 9 * time.Second, SystemCPU: 2 * time.Second, IOWait: -1, ImageBytes: 100 << 20, ResidentBytes: 100 << 20,
		IO: &job.IO{ReadBytes: 4096, WriteBytes: 8192, Reads: 1, Writes: 2}}
	if got := m.usage(); !cmp.Equal(want, got) {
		t.Errorf("with a cgroup (-want +got):\n%s", cmp.Diff(want, got))
	}
}
