package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAmount(t *testing.T) {
	pod := Amount{CPUs: 8, Memory: 16384, Disk: 1 << 20, GPUs: 1}
	job := Amount{CPUs: 1, Memory: 4096, Disk: 1 << 10}
	if diff := cmp.Diff(Amount{CPUs: 7, Memory: 12288, Disk: 1<<20 - 1<<10, GPUs: 1}, pod.Minus(job)); diff != "" {
		t.Errorf("Minus: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(Amount{}, job.Minus(pod)); diff != "" {
		t.Errorf("Minus goes below zero: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(pod, pod.Minus(job).Plus(job)); diff != "" {
		t.Errorf("Plus: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(Amount{CPUs: 8, Memory: 16384, Disk: 1 << 20, GPUs: 2}, pod.Most(Amount{CPUs: 1, GPUs: 2})); diff != "" {
		t.Errorf("Most: -want +got\n%s", diff)
	}
	for _, c := range []struct {
		name  string
		room  Amount
		job   Amount
		limit int64
		times int64
	}{
		{"memory is scarce", pod, job, 100, 4},
		{"the limit counts", pod, job, 3, 3},
		{"no GPU there", Amount{CPUs: 8, Memory: 16384, Disk: 1 << 20}, Amount{CPUs: 1, GPUs: 1}, 100, 0},
		{"one GPU", pod, Amount{CPUs: 1, GPUs: 1}, 100, 1},
		{"no container left", Amount{CPUs: 8, Memory: 16384, Disk: 1 << 20}, Amount{CPUs: 1, Payloads: 1}, 100, 0},
		{"containers are scarce", Amount{CPUs: 8, Payloads: 2}, Amount{CPUs: 1, Payloads: 1}, 100, 2},
		{"nothing asked for", pod, Amount{}, 7, 7},
		{"no room", Amount{}, job, 7, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.room.Times(c.job, c.limit); got != c.times {
				t.Errorf("Times is %d, want %d", got, c.times)
			}
			if got, want := c.room.Fits(c.job), c.room.Times(c.job, 1) == 1; got != want {
				t.Errorf("Fits is %v, but Times says %v", got, want)
			}
		})
	}
}

func TestUse(t *testing.T) {
	job := Amount{CPUs: 4, Memory: 4096}
	for _, c := range []struct {
		name string
		pod  Amount
		want float64
	}{
		{"all of it", Amount{CPUs: 4, Memory: 4096, Disk: 1 << 30}, 1},
		{"half of the memory", Amount{CPUs: 4, Memory: 8192}, 0.75},
		{"a GPU lies idle", Amount{CPUs: 4, Memory: 4096, GPUs: 1}, 2.0 / 3},
		{"nothing there", Amount{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.pod.Use(job); got != c.want {
				t.Errorf("Use is %v, want %v", got, c.want)
			}
		})
	}
}
