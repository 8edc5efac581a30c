package status

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"podstarter/internal/buildinfo"
	"podstarter/provisioner/backoff"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/round"
)

const namespace = "podstarter_provisioner"

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
}

var (
	leader     = describe("leader", "1 while this provisioner makes pods, 0 while it stands by. Only the leader has numbers of jobs and pods.")
	idle       = describe("idle_jobs", "Idle jobs that the last round saw.")
	places     = describe("jobs", "Idle jobs by where they get a place: free room, room that running jobs leave soon, pods on their way, new pods, or none (waiting).", "place")
	schedds    = describe("schedd_idle_jobs", "Idle jobs that count of the schedds that have the most, and of all other schedds together. The pool is empty for those of this pool; jobs of others flock here.", "schedd", "pool")
	without    = describe("waiting_jobs", "Idle jobs that get no place, by cause.", "cause")
	pods       = describe("pods", "Pods by template and phase. Templates that are no longer in the configuration are counted together.", "template", "phase")
	made       = describe("pods_made_total", "Pods that were made.")
	withdrawn  = describe("pods_withdrawn_total", "Pods that were withdrawn before they began.")
	removed    = describe("pods_removed_total", "Pods that ran and were ended, since they have never reported to the collector.")
	failed     = describe("pods_failed_total", "Pods that came to nothing, by template and reason. After a start, those that are still there count again.", "template", "reason")
	waits      = describe("template_waits", "1 while no pod of the template is made after others of it came to nothing, or no job took the last ones.", "template")
	untaken    = describe("template_untaken", "How many pods of the template in a row were free until they ended, while jobs for which they were made were idle.", "template")
	failures   = describe("template_failures", "How often in a row pods of the template came to nothing.", "template")
	until      = describe("template_waits_until_seconds", "When the next pod of the template may be made, in seconds since 1970; 0 if it does not wait.", "template")
	smaller    = describe("template_smaller_shapes", "Shapes of the template whose slots have less than it says, so that jobs count on less.", "template")
	problems   = describe("errors_total", "Errors that rounds met, by source.", "source")
	lastRound  = describe("last_round_timestamp_seconds", "When the last round ended.")
	build      = describe("build_info", "Version of podstarter.", "version")
	phaseNames = [...]string{"pending", "running", "ended"}
	reasons    = slices.Sorted(maps.Keys(backoff.Horizons))
	all        = []*prometheus.Desc{leader, idle, places, schedds, without, pods, made, withdrawn, removed, failed, waits, failures, until, untaken, smaller, problems, lastRound, build}
)

// Describe implements prometheus.Collector.
func (b *Board) Describe(to chan<- *prometheus.Desc) {
	for _, d := range all {
		to <- d
	}
	b.rounds.Describe(to)
}

// Collect implements prometheus.Collector.
func (b *Board) Collect(to chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	put := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	put(leader, gauge, one(!b.begun.IsZero()))
	put(build, gauge, 1, buildinfo.Version())
	put(made, counter, float64(b.totals.made))
	put(withdrawn, counter, float64(b.totals.withdrawn))
	put(removed, counter, float64(b.totals.removed))
	// Also those that have not happened: the first of a new series is no increase.
	for _, t := range append(slices.Clone(b.config.Templates), other) {
		for _, r := range reasons {
			put(failed, counter, float64(b.totals.failed[failure{t, r}]), t, string(r))
		}
	}
	for _, s := range round.Sources {
		put(problems, counter, float64(b.totals.problems[s]), string(s))
	}
	b.rounds.Collect(to)
	if b.last == nil {
		return
	}
	put(lastRound, gauge, float64(b.ended.UnixMilli())/1000)
	b.collectRound(b.last, put)
}

// collectRound puts what the last round saw. What it could not see is left out: a
// number of jobs that is not known is not 0.
func (b *Board) collectRound(rep *round.Report, put func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string)) {
	const gauge = prometheus.GaugeValue
	for i, s := range rep.Backoff {
		if i == len(b.config.Templates) {
			break
		}
		name := b.config.Templates[i]
		end := waitsUntil(s, rep.At)
		if i < len(rep.Untaken) {
			put(untaken, gauge, float64(rep.Untaken[i].Left), name)
			end = max(end, waitsUntil(rep.Untaken[i].State, rep.At))
		}
		put(waits, gauge, one(end > 0), name)
		put(failures, gauge, float64(s.Failures), name)
		put(until, gauge, float64(end), name)
	}
	if rep.Unknown {
		return
	}
	shapes := map[string]int{}
	for _, s := range rep.Smaller {
		name, _, _ := strings.Cut(rep.Shapes[s.Shape], "/")
		shapes[name]++
	}
	for _, name := range b.config.Templates {
		put(smaller, gauge, float64(shapes[name]), name)
	}
	if rep.Offline == nil {
		b.collectJobs(rep, put)
	}
	counts := b.pods(rep)
	for _, t := range append(slices.Clone(b.config.Templates), other) {
		for phase, name := range phaseNames {
			put(pods, gauge, float64(counts[t][phase]), t, name)
		}
	}
}

// waitsUntil returns until when no pod is made, in seconds since 1970, or 0.
func waitsUntil(s backoff.State, now time.Time) int64 {
	if s.Failures > 0 && now.Before(s.Until) {
		return s.Until.Unix()
	}
	return 0
}

// collectJobs puts where idle jobs get their places. In the mode offline-ads nobody
// counts them.
func (b *Board) collectJobs(rep *round.Report, put func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string)) {
	const gauge = prometheus.GaugeValue
	var jobs int
	var sum decision.Outcome
	causes := map[decision.Cause]int{}
	for _, o := range rep.Output.Groups {
		jobs += o.Idle
		sum.Free += o.Free
		sum.Soon += o.Soon
		sum.Coming += o.Coming
		sum.New += o.New
		for _, r := range o.Waiting {
			causes[r.Cause] += r.Jobs
			sum.Idle += r.Jobs
		}
	}
	put(idle, gauge, float64(jobs))
	for _, s := range b.named.bound(access(rep)) {
		put(schedds, gauge, float64(s.Idle), s.Name, s.Pool)
	}
	for name, n := range map[string]int{"free": sum.Free, "soon": sum.Soon, "coming": sum.Coming, "new": sum.New, "waiting": sum.Idle} {
		put(places, gauge, float64(n), name)
	}
	for _, c := range decision.Causes {
		put(without, gauge, float64(causes[c]), string(c))
	}
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// ago is how long ago something was, for people.
func ago(now, at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return now.Sub(at).Round(time.Second).String() + " ago"
}
