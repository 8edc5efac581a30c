package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"podstarter/integration/pool/controlplane"
)

// tables is the whole result as text, in Markdown.
func (r *results) tables() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, %s. %d simulated pilots with %d payload container(s) each, on %d simulated nodes; jobs of %s for %s, their starts spread; "+
		"the image of %.0f %% of the jobs had to be pulled, which was taken to need 5 s. Control plane, KWOK and pilots shared the machine.\n\n",
		r.when.UTC().Format("2006-01-02"), r.machine, r.load.pilots, r.load.slots, r.load.nodes, plain(r.load.job), plain(r.load.during), 100*r.load.cold)
	r.latency(&b)
	r.errors(&b)
	r.processes(&b)
	r.requests(&b)
	r.perJob(&b)
	r.disk(&b)
	if r.single != nil {
		r.single.table(&b)
	}
	r.grown(&b)
	return b.String()
}

// plain is a duration without zeros at its end.
func plain(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// header begins a table.
func header(b *strings.Builder, columns ...string) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

// row is a line of one.
func row(b *strings.Builder, cells ...string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }

// at is the value below which the part q of them lies.
func at(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond))
}

func (r *results) latency(b *strings.Builder) {
	header(b, "a binding's patch, ms", "number", "median", "99 of 100", "most")
	for _, l := range []struct {
		name   string
		values []time.Duration
	}{
		{"as the pilot sees it, with a new connection", r.fleet.patches},
		{"in the API server", r.callsOf(request{pilots, "patch", "pods"}).took},
	} {
		row(b, l.name, fmt.Sprint(len(l.values)), milliseconds(at(l.values, 0.5)), milliseconds(at(l.values, 0.99)), milliseconds(at(l.values, 1)))
	}
	fmt.Fprintln(b)
}

func (r *results) callsOf(kind request) calls {
	if c := r.calls[kind]; c != nil {
		return *c
	}
	return calls{}
}

func (r *results) errors(b *strings.Builder) {
	header(b, "errors", "number")
	row(b, "jobs without a container, of "+fmt.Sprint(r.fleet.jobs), fmt.Sprint(r.fleet.unbound))
	failed := 0
	for kind, c := range r.calls {
		if kind.who == pilots {
			failed += c.failed
		}
	}
	row(b, "pilots' requests that the API server refused or failed", fmt.Sprint(failed))
	row(b, "requests rejected by API Priority and Fairness, of all users", fmt.Sprintf("%.0f", r.api.sum("apiserver_flowcontrol_rejected_requests_total")))
	row(b, "payload containers whose status did not show the last job in the end (KWOK was too slow)", fmt.Sprint(r.behind))
	for _, text := range slices.Sorted(maps.Keys(r.fleet.errors)) {
		row(b, "— "+strings.ReplaceAll(text, "|", "/"), fmt.Sprint(r.fleet.errors[text]))
	}
	fmt.Fprintln(b)
}

func (r *results) processes(b *strings.Builder) {
	header(b, "process", "CPUs busy", "without jobs", "CPU a job, ms", "memory at the end, MiB", "most, MiB")
	for _, name := range []string{controlplane.APIServer, controlplane.Etcd, controlplane.KWOK, myself} {
		u := r.used[name]
		row(b, name, fmt.Sprintf("%.3f", r.busy(name)), fmt.Sprintf("%.3f", r.idle.busy(name)), fmt.Sprintf("%.1f", 1000*r.cpuOfJob(name)),
			fmt.Sprint(u.resident>>20), fmt.Sprint(u.most>>20))
	}
	fmt.Fprintln(b)
}

// busy is how many CPUs a process kept busy.
func (r *results) busy(name string) float64 { return r.used[name].cpu.Seconds() / r.took.Seconds() }

// cpuOfJob are the CPU seconds of a job in a process, without what that needs by itself.
func (r *results) cpuOfJob(name string) float64 {
	return (r.busy(name) - r.idle.busy(name)) * r.took.Seconds() / float64(max(r.fleet.jobs, 1))
}

// ofJob is what a counter grew by for a job, given what it grew by, and without jobs.
func (r *results) ofJob(grown, idle float64) float64 {
	return (grown - idle*r.took.Seconds()/r.idle.took.Seconds()) / float64(max(r.fleet.jobs, 1))
}

// kinds are the kinds of requests, the most frequent first.
func kinds(all map[request]*calls) []request {
	return slices.SortedFunc(maps.Keys(all), func(a, b request) int {
		if n := all[b].n - all[a].n; n != 0 {
			return n
		}
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
}

// requestsOfJob is how many requests of a kind a job causes.
func (r *results) requestsOfJob(kind request) float64 {
	idle := 0
	if c := r.idle.calls[kind]; c != nil {
		idle = c.n
	}
	return r.ofJob(float64(r.callsOf(kind).n), float64(idle))
}

func (r *results) requests(b *strings.Builder) {
	header(b, "requests of a job", "by", "number", "median in the API server, ms", "99 of 100, ms")
	for _, kind := range kinds(r.calls) {
		if !kind.ofJobs() {
			continue
		}
		c, median, most := r.callsOf(kind), "", ""
		if kind.verb != "watch" {
			median, most = milliseconds(at(c.took, 0.5)), milliseconds(at(c.took, 0.99))
		}
		row(b, kind.verb+" "+kind.resource, kind.who, fmt.Sprintf("%.2f", r.requestsOfJob(kind)), median, most)
	}
	fmt.Fprintln(b)
}

// readByKubelet is how much of a job's reads of this program are those of a kubelet. The API server does not count them by user,
// but all read the same pods.
func (r *results) readByKubelet() float64 {
	kubelet, pilot := r.requestsOfJob(request{kubelets, "get", "pods"}), r.requestsOfJob(request{pilots, "get", "pods"})
	all := r.grew(ofAPI, "apiserver_response_sizes_sum", "resource=pods", "verb=GET")
	return all * kubelet / (kubelet + pilot)
}

// writes are the operations of the API server that change an object in etcd.
var writes = []string{"create", "update", "delete"}

// written is how many objects of a resource a job writes; of all if it is empty.
func (r *results) written(resource string) float64 {
	count := func(m metrics) float64 {
		total := 0.0
		for _, operation := range writes {
			labels := []string{"operation=" + operation}
			if resource != "" {
				labels = append(labels, "resource="+resource)
			}
			total += m.sum("etcd_request_duration_seconds_count", labels...)
		}
		return total
	}
	return r.ofJob(count(r.api), count(r.idle.api))
}

// grew is what a metric of the API server or etcd grew by for a job.
func (r *results) grew(pick func(*results) metrics, name string, labels ...string) float64 {
	return r.ofJob(pick(r).sum(name, labels...), pick(r.idle).sum(name, labels...))
}

func ofAPI(r *results) metrics  { return r.api }
func ofEtcd(r *results) metrics { return r.etcd }

func (r *results) perJob(b *strings.Builder) {
	header(b, "of a job", "")
	number := func(name string, value float64) { row(b, name, fmt.Sprintf("%.2f", value)) }
	size := func(name string, value float64) { row(b, name, fmt.Sprintf("%.1f KiB", value/1024)) }
	number("objects written, all", r.written(""))
	number("— pods", r.written("pods"))
	number("— events", r.written("events"))
	size("etcd's log of writes (WAL)", r.grew(ofEtcd, "etcd_disk_wal_write_bytes_total"))
	size("from the API server to etcd", r.grew(ofEtcd, "etcd_network_client_grpc_received_bytes_total"))
	size("from etcd to the API server", r.grew(ofEtcd, "etcd_network_client_grpc_sent_bytes_total"))
	size("bodies of requests", r.grew(ofAPI, "apiserver_request_body_size_bytes_sum"))
	number("changes of pods that watches deliver", r.grew(ofAPI, "apiserver_watch_events_total", "resource=pods"))
	size("— their size", r.grew(ofAPI, "apiserver_watch_events_sizes_sum", "resource=pods"))
	size("a pilot reads from the API server, encryption included", r.ofJob(float64(r.used[myself].read), float64(r.idle.used[myself].read))-r.readByKubelet())
	size("a pilot sends", r.ofJob(float64(r.used[myself].sent), float64(r.idle.used[myself].sent)))
	const admission = "apiserver_admission_controller_admission_duration_seconds_sum"
	row(b, "time in admission policies, of all updates", fmt.Sprintf("%.2f ms", 1000*r.grew(ofAPI, admission, "name=ValidatingAdmissionPolicy", "operation=UPDATE")))
	fmt.Fprintln(b)
}

func (r *results) disk(b *strings.Builder) {
	header(b, "etcd", "")
	row(b, "99 of 100 syncs of its log take at most", fmt.Sprintf("%.0f ms", 1000*r.etcd.quantile(0.99, "etcd_disk_wal_fsync_duration_seconds")))
	row(b, "99 of 100 commits of its database take at most", fmt.Sprintf("%.0f ms", 1000*r.etcd.quantile(0.99, "etcd_disk_backend_commit_duration_seconds")))
	row(b, "database at the end", fmt.Sprintf("%.0f MiB", r.etcdNow.sum("etcd_mvcc_db_total_size_in_bytes")/(1<<20)))
	row(b, "— of it in use", fmt.Sprintf("%.0f MiB", r.etcdNow.sum("etcd_mvcc_db_total_size_in_use_in_bytes")/(1<<20)))
	row(b, "written to its disk", fmt.Sprintf("%.2f MiB/s", float64(r.used[controlplane.Etcd].written)/(1<<20)/r.took.Seconds()))
	fmt.Fprintln(b)
}
