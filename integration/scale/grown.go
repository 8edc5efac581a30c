package main

import (
	"fmt"
	"strings"
	"time"

	"podstarter/integration/pool/controlplane"
)

// history is how long etcd keeps what was written at most: the API server removes versions of objects that are older than
// its interval (--etcd-compaction-interval, 5 min), and looks once in that time.
const history = 10 * time.Minute

// grown shows what more slots need if each job costs what it cost here.
func (r *results) grown(b *strings.Builder) {
	header(b, "slots", "length of a job", "jobs/s", "requests/s", "objects written/s", "WAL, MiB/s", "history in etcd, GiB", "CPUs of the API server", "CPUs of etcd")
	requests := 0.0
	for kind := range r.calls {
		if kind.ofJobs() {
			requests += r.requestsOfJob(kind)
		}
	}
	wal := r.grew(ofEtcd, "etcd_disk_wal_write_bytes_total") / (1 << 20)
	for _, slots := range []int{1_000, 10_000, 100_000} {
		for _, length := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 8 * time.Hour} {
			jobs := float64(slots) / length.Seconds()
			row(b, fmt.Sprint(slots), plain(length), number(jobs), number(jobs*requests), number(jobs*r.written("")), number(jobs*wal), number(jobs*wal*history.Seconds()/1024),
				number(jobs*r.cpuOfJob(controlplane.APIServer)), number(jobs*r.cpuOfJob(controlplane.Etcd)))
		}
	}
	fmt.Fprintln(b)
}

// number has as many digits as make sense.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 1:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
