package job

import (
	"syscall"
	"testing"
	"time"

	"podstarter/classads"
)

func TestCheckpoints(t *testing.T) {
	exit, signal := func(n int) int { return n << 8 }, func(n int) int { return n }
	for name, tt := range map[string]struct {
		ad             string
		self, bySignal bool
		status, other  int
		broken         string
	}{
		"none": {ad: "", status: 0, other: exit(1),
			broken: "Promised exit was with exit code 0, actual exit status was with exit code 1."},
		"an exit code": {ad: "WantFTOnCheckpoint = true\nSuccessCheckpointExitCode = 85", self: true, status: exit(85), other: signal(9),
			broken: "Promised exit was with exit code 85, actual exit status was on signal 9."},
		"a signal": {ad: "WantCheckpointSignal = true\nSuccessCheckpointExitBySignal = true\nSuccessCheckpointExitSignal = 10", bySignal: true,
			status: signal(10), other: exit(10),
			broken: "Promised exit was on signal 10, actual exit status was with exit code 10."},
		"a signal that does not count": {ad: "WantFTOnCheckpoint = true\nSuccessCheckpointExitSignal = 10\nSuccessCheckpointExitCode = 3", self: true,
			status: exit(3), other: signal(10),
			broken: "Promised exit was with exit code 3, actual exit status was on signal 10."},
	} {
		t.Run(name, func(t *testing.T) {
			got := CheckpointsOf(mustAd(t, tt.ad))
			if got.Self != tt.self || got.BySignal != tt.bySignal || got.Status != tt.status {
				t.Errorf("%+v", got)
			}
			want := "Job did not exit as promised when sent its checkpoint signal.  " + tt.broken
			if text := got.Broken(syscall.WaitStatus(tt.other)); text != want {
				t.Errorf("%q, want %q", text, want)
			}
		})
	}
}

func TestPublishCheckpoint(t *testing.T) {
	ad := classads.NewAd()
	began := time.Unix(1_800_000_000, 900_000_000)
	PublishCheckpoint(ad, 3, Process{Started: began, Ended: began.Add(1999 * time.Millisecond)})
	const want = "CheckpointNumber = 3\nJobLastCheckpointTime = 1800000002\nNewlyCommittedTime = 1\n"
	if got := lines(ad); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
