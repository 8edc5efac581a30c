package main

import (
	"testing"
	"time"
)

func TestAt(t *testing.T) {
	var values []time.Duration
	for i := range 200 {
		values = append(values, time.Duration(200-i))
	}
	for _, tc := range []struct {
		q    float64
		want time.Duration
	}{{0.5, 100}, {0.99, 198}, {1, 200}} {
		if got := at(values, tc.q); got != tc.want {
			t.Errorf("the part %v is below %d, want %d", tc.q, got, tc.want)
		}
	}
	if got := at(nil, 0.5); got != 0 {
		t.Errorf("nothing gives %d", got)
	}
	if got := at(values[:1], 0.01); got != 200 {
		t.Errorf("one value gives %d", got)
	}
}

// What the cluster does without jobs is not a job's.
func TestOfJobLeavesOutTheIdleLoad(t *testing.T) {
	r := results{took: 100 * time.Second, idle: &results{took: 10 * time.Second}}
	r.fleet.jobs = 50
	if got := r.ofJob(300, 10); got != 4 { // 300 - 10*10, by 50
		t.Errorf("%v a job, want 4", got)
	}
}

func TestPlain(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Minute: "1m", 90 * time.Second: "1m30s", 8 * time.Hour: "8h", 5 * time.Second: "5s"} {
		if got := plain(d); got != want {
			t.Errorf("%s is written as %q, want %q", d, got, want)
		}
	}
}

func TestContainerName(t *testing.T) {
	for slot, want := range map[int]string{0: "payload", 1: "payload-2", 7: "payload-8"} {
		if got := containerName(slot); got != want {
			t.Errorf("slot %d has the container %q, want %q", slot, got, want)
		}
	}
}
