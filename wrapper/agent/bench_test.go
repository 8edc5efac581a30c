package agent_test

import (
	"os"
	"testing"
	"time"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// BenchmarkReady measures the time from the wrapper's execve to the announced socket and
// the greeting.
func BenchmarkReady(b *testing.B) {
	for b.Loop() {
		w := agenttest.StartWrapper(b, nil)
		c := w.Dial(b)
		b.StopTimer()
		_ = c.Close()
		w.End(b)
		b.StartTimer()
	}
}

// BenchmarkActivation measures the steps of a trivial job on a waiting wrapper.
func BenchmarkActivation(b *testing.B) {
	w := agenttest.StartWrapper(b, nil)
	s := agenttest.Spec(b)
	s.Path, s.Args = "/bin/true", nil
	ctx := agenttest.Context(b)
	var dial, start, wait, sweep time.Duration
	for b.Loop() {
		t0 := time.Now()
		c := w.Dial(b)
		t1 := time.Now()
		if _, err := c.Start(ctx, s); err != nil {
			b.Fatal(err)
		}
		t2 := time.Now()
		if _, err := c.Wait(ctx); err != nil {
			b.Fatal(err)
		}
		t3 := time.Now()
		if err := c.Sweep(ctx); err != nil {
			b.Fatal(err)
		}
		t4 := time.Now()
		_ = c.Close()
		dial, start, wait, sweep = dial+t1.Sub(t0), start+t2.Sub(t1), wait+t3.Sub(t2), sweep+t4.Sub(t3)
	}
	report := func(d time.Duration, what string) {
		b.ReportMetric(float64(d.Microseconds())/float64(b.N), "µs/"+what)
	}
	report(dial, "dial")
	report(start, "start")
	report(wait, "wait")
	report(sweep, "sweep")
	_ = os.Stdout
	_ = payload.Protocol
}
