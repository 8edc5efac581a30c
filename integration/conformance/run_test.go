package conformance

import (
	"testing"

	"podstarter/classads"
)

func TestLastShadow(t *testing.T) {
	for name, tt := range map[string]struct {
		history string
		want    int64
	}{
		"completed at once":    {"JobStatus = 4\nNumShadowStarts = 1\n", 1},
		"evicted, then done":   {"JobStatus = 4\nNumShadowStarts = 2\n", 2},
		"removed":              {"JobStatus = 3\nNumShadowStarts = 2\n", 0},
		"reconnected":          {"JobStatus = 4\nNumShadowStarts = 2\nTotalJobReconnectAttempts = 1\n", 0},
		"disconnected and run": {"JobStatus = 4\nNumShadowStarts = 2\nJobDisconnectedDate = 1795433763\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			ad, err := classads.ParseOld(tt.history)
			if err != nil {
				t.Fatal(err)
			}
			if got := lastShadow(ad); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
}
