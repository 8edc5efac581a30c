//go:build pool

package nodes

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"podstarter/integration/harness"
)

// slots are those of each execution point.
const slots = 8

// open finds the pool; without two nodes there is nothing to test.
func open(t *testing.T) site {
	t.Helper()
	s, err := find()
	if err != nil {
		t.Fatal(err)
	}
	out := must(t, s, "status")
	for _, pod := range []string{ours + "-2", stock + "-2"} {
		if n := strings.Count(out, "@"+pod+"@"); n != slots {
			t.Fatalf("%s has %d slots, not %d; start the pool with: up --guests 2 --stock --slots %d --partitionable=false\n%s", pod, n, slots, slots, out)
		}
	}
	return s
}

// must runs a verb of the pool program that has to work.
func must(t *testing.T, s site, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute)
	defer cancel()
	out, err := s.run(ctx, "", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// both submits jobs for our execution points and for the stock ones, and waits until all run on the second node.
func both(t *testing.T, s site, sleep, lease time.Duration) map[string]jobs {
	t.Helper()
	return start(t, s, sleep, lease, ours, stock)
}

// start submits jobs for the execution points of these kinds, and waits until all run on the second node.
func start(t *testing.T, s site, sleep, lease time.Duration, pods ...string) map[string]jobs {
	t.Helper()
	all := map[string]jobs{}
	for _, pod := range pods {
		j, err := submit(t.Context(), s, pod, slots, sleep, lease)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := j.remove(ctx); err != nil {
				t.Error(err)
			}
		})
		all[pod] = j
	}
	took := await(t, all, harness.EventExecute, 1, 5*time.Minute)
	t.Logf("all jobs run after %v", took)
	for pod, j := range all {
		by, err := j.events(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for proc, events := range by {
			if !strings.Contains(text(events), "@"+pod+"-2@") {
				t.Fatalf("job %d of %s does not run on the second node:\n%s", proc, pod, text(events))
			}
		}
	}
	return all
}

func text(events []harness.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.Text() + "\n")
	}
	return b.String()
}

// await waits for an event of all jobs, and returns how long it took with each starter.
func await(t *testing.T, all map[string]jobs, number, n int, most time.Duration) map[string]time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), most, fmt.Errorf("not within %v", most))
	defer cancel()
	var group errgroup.Group
	times := make(chan func(map[string]time.Duration), len(all))
	for pod, j := range all {
		group.Go(func() error {
			took, err := j.await(ctx, number, n)
			times <- func(m map[string]time.Duration) { m[pod] = took.Round(100 * time.Millisecond) }
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	found := map[string]time.Duration{}
	for range all {
		(<-times)(found)
	}
	return found
}

// judge checks that all jobs have ended once and well.
func judge(t *testing.T, all map[string]jobs, least, most int) {
	t.Helper()
	for pod, j := range all {
		for _, wrong := range j.verdict(t.Context(), least, most) {
			t.Errorf("%s: %s", pod, wrong)
		}
	}
}

// patience is for jobs that begin again: a negotiation, an image that is there, sixteen starters on one slow CPU.
const patience = 6 * time.Minute

// slower is how many times as long as the stock starter's jobs ours may take to run again. They leave the node as fast; then
// each of eight gets a container of its own from one kubelet on one slow CPU, which made it 2.4 times as long.
const slower = 4

// TestDrained: the jobs of a node that is drained begin again on the other.
func TestDrained(t *testing.T) {
	s := open(t)
	again := map[string]time.Duration{}
	for _, pod := range []string{stock, ours} {
		t.Run(pod, func(t *testing.T) {
			all := start(t, s, 90*time.Second, 20*time.Minute, pod)
			t.Cleanup(func() {
				must(t, s, "kubectl", "uncordon", "node-2")
				must(t, s, "up")
			})
			drained := make(chan error, 1)
			began := time.Now()
			go func() {
				_, err := s.run(t.Context(), "", "kubectl", "drain", "node-2", "--force", "--delete-emptydir-data", "--timeout=3m")
				t.Logf("drained after %v", time.Since(began).Round(100*time.Millisecond))
				drained <- err
			}()
			await(t, all, harness.EventEvicted, 1, patience)
			t.Logf("all jobs have left after %v", time.Since(began).Round(100*time.Millisecond))
			await(t, all, harness.EventExecute, 2, patience)
			again[pod] = time.Since(began).Round(100 * time.Millisecond)
			t.Logf("all run again after %v", again[pod])
			if err := <-drained; err != nil {
				t.Error(err)
			}
			await(t, all, harness.EventTerminated, 1, patience)
			judge(t, all, 2, 2)
		})
	}
	t.Logf("until all run again, ours / stock: %.2f", again[ours].Seconds()/again[stock].Seconds())
	if again[ours] > slower*again[stock] {
		t.Errorf("our jobs run again %v after a drain, the stock starter's %v", again[ours], again[stock])
	}
}

// TestKilled: the power of a node fails under its jobs, and comes back. Each of them runs to its end once.
func TestKilled(t *testing.T) {
	s := open(t)
	all := both(t, s, 60*time.Second, time.Minute)
	must(t, s, "guests", "kill", "guest-2")
	t.Cleanup(func() { must(t, s, "up") })
	began := time.Now()
	must(t, s, "guests", "boot", "guest-2")
	t.Logf("the node is back after %v", time.Since(began).Round(100*time.Millisecond))
	times := await(t, all, harness.EventTerminated, 1, 2*patience)
	t.Logf("all have ended after it: %v", times)
	judge(t, all, 2, 3)
}

// TestDead: the power of a node fails for good. Its jobs run on the other when their leases have ended.
func TestDead(t *testing.T) {
	s := open(t)
	all := both(t, s, 60*time.Second, time.Minute)
	must(t, s, "guests", "kill", "guest-2")
	t.Cleanup(func() {
		must(t, s, "guests", "boot", "guest-2")
		must(t, s, "up")
	})
	times := await(t, all, harness.EventTerminated, 1, 2*patience)
	t.Logf("all have ended: %v", times)
	judge(t, all, 2, 2)
	for pod, j := range all {
		by, err := j.events(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for proc, events := range by {
			if !strings.Contains(text(events), "@"+pod+"@") {
				t.Errorf("job %d of %s did not move:\n%s", proc, pod, text(events))
			}
		}
	}
}

// TestCutOff: a node reaches neither the API server nor the access point for a while that is shorter than the jobs' lease.
// They go on. A job whose shadow has noticed it begins again at its end: the shadow of 25.14 refuses output after it has
// connected to the starter again, whichever starter that is (file_transfer.cpp:Init returns early after stopServer).
func TestCutOff(t *testing.T) {
	s := open(t)
	all := both(t, s, 150*time.Second, 20*time.Minute)
	must(t, s, "guests", "cut", "guest-2")
	t.Cleanup(func() { must(t, s, "guests", "heal") })
	timer := time.NewTimer(45 * time.Second)
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
	must(t, s, "guests", "heal")
	times := await(t, all, harness.EventTerminated, 1, patience)
	t.Logf("all have ended after the cut: %v", times)
	judge(t, all, 1, 2)
}

var wallClock = regexp.MustCompile(`^[0-9.]+$`)

// TestClock: a node's clock is wrong by minutes. What jobs report is not. The clock jumps under the startds, which end some
// claims for that, whichever starter they run.
func TestClock(t *testing.T) {
	s := open(t)
	set := func(offset time.Duration) {
		t.Helper()
		must(t, s, "in", "--node", "2", "date", "-s", "@"+strconv.FormatInt(time.Now().Add(offset).Unix(), 10))
	}
	t.Cleanup(func() { set(0) })
	for _, offset := range []time.Duration{12 * time.Minute, -12 * time.Minute} {
		t.Run(offset.String(), func(t *testing.T) {
			set(offset)
			all := both(t, s, 20*time.Second, 20*time.Minute)
			await(t, all, harness.EventTerminated, 1, patience)
			judge(t, all, 1, 3)
			for pod, j := range all {
				out, err := s.ap(t.Context(), "", "condor_history", j.cluster, "-af", "RemoteWallClockTime")
				if err != nil {
					t.Fatal(err)
				}
				for _, seconds := range strings.Fields(out) {
					wall, err := strconv.ParseFloat(seconds, 64)
					if !wallClock.MatchString(seconds) || err != nil || wall < 19 || wall > 300 {
						t.Errorf("%s: a job of 20 s took %s s", pod, seconds)
					}
				}
			}
		})
	}
}
