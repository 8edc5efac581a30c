//go:build pool

package e2e

import (
	"slices"
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/integration/harness"
)

// TestUsage: the reported usage of a job that uses CPU, memory and disk is near the truth, and near
// what the stock starter reports of the same job.
func TestUsage(t *testing.T) {
	const (
		cpu    = 3.0      // seconds
		memory = 96 << 10 // KiB
		disk   = 24 << 10 // KiB
		own    = 16 << 10 // KiB that the probe may need itself
	)
	if side == harness.Ours {
		configure(t, "USE_PSS = True")
	}
	s := job("memory=96 disk=big:24 burn=3 sleep=5s", "transfer_output_files =", "request_memory = 256", "request_disk = 64M")
	measured := map[harness.Side]*classads.Ad{}
	jobs := map[harness.Side]harness.Job{}
	for _, on := range []harness.Side{harness.Ours, harness.Stock} {
		s.Side, s.Name = on, "usage"
		jobs[on] = submit(t, s)[0]
	}
	for on, job := range jobs {
		mustExit(t, job, 0)
		ad, err := job.History(soon(t, patience))
		if err != nil {
			t.Fatal(err)
		}
		measured[on] = ad
	}
	value := func(on harness.Side, attributes ...string) (sum float64) {
		for _, attribute := range attributes {
			v, err := measured[on].GetReal(attribute)
			if err != nil {
				t.Errorf("%s of the job on the %s side: %v", attribute, on, err)
			}
			sum += v
		}
		return sum
	}
	for _, c := range []struct {
		attributes []string
		low, high  float64
	}{
		// Both are whole seconds.
		{[]string{"RemoteUserCpu", "RemoteSysCpu"}, cpu - 2, cpu + 1.5},
		{[]string{"ResidentSetSize_RAW"}, memory, memory + own},
		// HTCondor computes it from ResidentSetSize, which the schedd rounds up by at most a quarter.
		{[]string{"MemoryUsage"}, memory / 1024, (memory + own) / 1024 * 1.25},
		{[]string{"DiskUsage_RAW"}, disk, disk + own},
	} {
		ours, stock := value(harness.Ours, c.attributes...), value(harness.Stock, c.attributes...)
		t.Logf("%s: ours %g, stock %g, expected %g to %g", c.attributes, ours, stock, c.low, c.high)
		if ours < c.low || ours > c.high {
			t.Errorf("%s is %g, want %g to %g", c.attributes, ours, c.low, c.high)
		}
	}
	if side == harness.Ours {
		// A share of the libraries is other processes'.
		if pss := value(harness.Ours, "ProportionalSetSizeKb_RAW"); pss < memory || pss > memory+own {
			t.Errorf("ProportionalSetSizeKb is %g, want %d to %d", pss, memory, memory+own)
		}
	}
	events, err := jobs[harness.Ours].Events()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(events, func(e harness.Event) bool { return e.Number == harness.EventImageSize })
	if at < 0 {
		t.Fatalf("no ImageSize event while the job ran: %s", harness.Headlines(events))
	}
	for _, word := range []string{"Image size of job updated", "MemoryUsage of job", "ResidentSetSize of job"} {
		if !slices.ContainsFunc(events, func(e harness.Event) bool {
			return e.Number == harness.EventImageSize && strings.Contains(e.Text(), word)
		}) {
			t.Errorf("no ImageSize event says %q; the first is %q", word, events[at].Text())
		}
	}
}
