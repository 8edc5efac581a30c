package main

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/starter/journal"
	"podstarter/starter/tally"
)

// collector makes metrics of what the keeper has put into a directory. It keeps nothing, so
// that totals never go back while the pod lives.
type collector struct{ dir string }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("podstarter_"+name, help, labels, nil)
}

var (
	begun     = describe("jobs_begun_total", "Jobs whose starter knows which job it is.")
	ended     = describe("jobs_ended_total", "Runs of jobs in this pod that ended, by outcome.", "outcome")
	codes     = describe("job_codes_total", "Ends that are not the job's own, by HTCondor's hold or vacate code.", "outcome", "code")
	active    = describe("active_seconds_total", "Seconds from begin to end of the jobs that have ended.")
	ran       = describe("run_seconds_total", "Seconds in which the programs of the jobs that have ended ran.")
	cpu       = describe("cpu_seconds_total", "Seconds of CPU that the programs of the jobs that have ended used.")
	bindings  = describe("binding_seconds", "Time until a payload container ran the job's image, by how it came to: kept, ahead, made, pulled.", "how")
	fetches   = describe("puller_wait_seconds", "Time for which bindings waited for a puller.")
	copies    = describe("image_copy_seconds", "Time for which the files of an image that the kubelet does not pull were copied into a payload container.")
	copied    = describe("image_copied_bytes_total", "Bytes of the files that were copied so.")
	failures  = describe("failures_total", "Verdicts on payload containers that failed: before the job was started (binding) or after (running), who is to blame, and the reason.", "phase", "blame", "reason")
	calls     = describe("api_requests_total", "Requests to the API server, by verb and HTTP status; none if there was no answer. Those of a job count when it has ended.", "verb", "code")
	slots     = describe("slots", "Slots by state: busy, idle, resting after a failure, offline in a sick pod.", "state")
	sick      = describe("pod_sick", "1 while the pod takes no jobs because none could run.")
	linesLost = describe("log_lines_lost_total", "Lines for kubectl logs that nobody read in time.")
	keeper    = describe("keeper_up", "1 while condor_pod_starter -keep lives, which counts all of this.")
	build     = describe("build_info", "Versions of podstarter and HTCondor.", "version", "htcondor")
	all       = []*prometheus.Desc{begun, ended, codes, active, ran, cpu, bindings, fetches, copies, copied, failures, calls, slots, sick, linesLost, keeper, build}
)

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range all {
		to <- d
	}
}

// Collect implements prometheus.Collector. If nothing can be read, the scrape fails.
func (c collector) Collect(to chan<- prometheus.Metric) {
	s, err := tally.Read(c.dir)
	if err != nil {
		to <- prometheus.NewInvalidMetric(begun, err)
		return
	}
	collect(s, time.Now(), func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}, func(d *prometheus.Desc, t tally.Times, labels ...string) {
		to <- prometheus.MustNewConstHistogram(d, t.Count, t.Sum, t.Cumulative(), labels...)
	})
}

func collect(s tally.Snapshot, now time.Time,
	put func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string), putTimes func(d *prometheus.Desc, t tally.Times, labels ...string)) {
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	t := s.Totals
	put(begun, counter, float64(t.Begun))
	// Also those that have not happened: the first of a new series is no increase.
	for _, o := range journal.Outcomes {
		put(ended, counter, float64(t.Ended[o]), string(o))
	}
	put(active, counter, t.Active)
	put(ran, counter, t.Ran)
	put(cpu, counter, t.CPU)
	for _, how := range payload.Hows {
		putTimes(bindings, t.Bindings[how], string(how))
	}
	putTimes(fetches, t.Fetches)
	putTimes(copies, t.Copies)
	put(copied, counter, float64(t.CopiedBytes))
	for _, m := range []struct {
		d      *prometheus.Desc
		counts map[string]int64
		labels int
	}{{codes, t.Codes, 2}, {failures, t.Failures, 3}, {calls, t.Calls, 2}} {
		for _, key := range slices.Sorted(maps.Keys(m.counts)) {
			if labels, ok := tally.Labels(key, m.labels); ok {
				put(m.d, counter, float64(m.counts[key]), labels...)
			}
		}
	}
	states := s.States(now)
	put(slots, gauge, float64(states.Busy), "busy")
	put(slots, gauge, float64(states.Idle), "idle")
	put(slots, gauge, float64(states.Resting), "resting")
	put(slots, gauge, float64(states.Offline), "offline")
	put(sick, gauge, one(now.Before(s.Sick)))
	put(linesLost, counter, float64(t.LinesLost))
	put(keeper, gauge, one(s.Keeper > 0 && !errors.Is(unix.Kill(s.Keeper, 0), unix.ESRCH)))
	put(build, gauge, 1, s.Version, s.Condor)
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
