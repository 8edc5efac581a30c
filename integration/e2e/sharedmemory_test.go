//go:build pool

package e2e

import (
	"testing"

	"podstarter/integration/harness"
)

// TestModeOwnSharedMemory: a job does not find in /dev/shm what a job of another payload container of the pod has there, or its
// pilot; so none can use up what there is for the others.
func TestModeOwnSharedMemory(t *testing.T) {
	oursOnly(t)
	const file = "/dev/shm/e2e-mine"
	if _, err := pool.EP(t.Context(), side, "touch", file+"-pilot"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.EP(background(t), side, "rm", "-f", file+"-pilot"); err != nil {
			t.Error(err)
		}
	})
	look := "peek=" + file + " peek=" + file + "-pilot facts"
	want := map[string]string{file: "no such file or directory", file + "-pilot": "no such file or directory"}
	check := func(job harness.Job) {
		t.Helper()
		mustExit(t, job, 0)
		seen, err := job.Facts("out")
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range want {
			if got := seen.Peeks[path]; got != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
	}
	if pool.Slots > 1 {
		first := submit(t, job("file="+file+":x ready forever"))[0]
		running(t, first, 1)
		ready(t)
	}
	check(submit(t, job(look))[0])
}
