package footprint_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkStarters measures starters whose jobs have run for some time.
func BenchmarkStarters(b *testing.B) {
	for _, inPod := range []bool{false, true} {
		for _, n := range []int{8, 32} {
			name := "local"
			if inPod {
				name = "pod"
			}
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					measure(b, start(b, n, inPod))
				}
			})
		}
	}
}

// span is how long wake-ups are counted, and what the starters have before.
var span = flag.Duration("span", 20*time.Second, "how long wake-ups are counted, and how long the jobs run before")

func measure(b *testing.B, s *starters) {
	b.Helper()
	time.Sleep(*span) // what the start needed is given back
	var before, after footprint
	add := func(sum *footprint) {
		sum.kinds = map[string]int{}
		for _, one := range s.all {
			f := read(b, one.cmd.Process.Pid)
			sum.pss, sum.dirty, sum.anonymous = sum.pss+f.pss, sum.dirty+f.dirty, sum.anonymous+f.anonymous
			sum.threads, sum.wakes = sum.threads+f.threads, sum.wakes+f.wakes
			for kind, n := range f.kinds {
				sum.kinds[kind] += n
			}
		}
	}
	add(&before)
	time.Sleep(*span)
	add(&after)
	report := func(n int, unit string) { b.ReportMetric(float64(n)/float64(len(s.all)), unit) }
	report(after.pss, "PSS")
	report(after.dirty, "private-dirty")
	report(after.anonymous, "anonymous")
	report(after.threads, "threads")
	report(after.wakes-before.wakes, "wakes")
	for kind, n := range after.kinds {
		report(n, "dirty-"+kind)
	}
	one := s.all[0] // the others are like it
	b.ReportMetric(float64(len(connections(b, one.cmd.Process.Pid))), "connections")
	goroutines := one.goroutines(b)
	b.ReportMetric(float64(len(goroutines)), "goroutines")
	if testing.Verbose() {
		b.Log(strings.Join(goroutines, "\n\n"))
	}
}
