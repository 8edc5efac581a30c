package main

import (
	"fmt"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// results are all measurements.
type results struct {
	when    time.Time
	machine string

	// Bindings: from the decision until the container is known to be ready.
	bare, cri                        []time.Duration
	quiet, kept, polling, pollingRow turns
	// Jobs that followed each other.
	stock, fresh, reused row
	memory               map[string]int64 // peak resident set in KiB by the process's name
}

// tables is the whole result as text, in Markdown.
func (r *results) tables() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, %s.\n\n", r.when.UTC().Format("2006-01-02"), r.machine)

	fmt.Fprint(&b, "| from the patch until the container is ready, s | runs | least | median | 9 of 10 | most | median / containerd alone |\n|---|---|---|---|---|---|---|\n")
	bare := spreadOf(r.bare)
	bound := r.fresh.inTurns(bind)
	for _, s := range []struct {
		name   string
		values []time.Duration
	}{
		{"containerd alone (`ctr run`, no kubelet)", r.bare},
		{"containerd by a kubelet's calls (`CreateContainer`, `StartContainer`)", r.cri},
		{"ours, quiet pod, same image", r.quiet.same},
		{"ours, quiet pod, another image", r.quiet.other},
		{"ours, jobs in a row, same image", bound.same},
		{"ours, jobs in a row, another image", bound.other},
		{"ours, container kept (`POD_STARTER_RESET = image`)", r.kept.all()},
		{"polling the pod's status, quiet pod", r.polling.all()},
		{"polling the pod's status, back to back", r.pollingRow.all()},
	} {
		line(&b, s.name, s.values, bare)
	}

	fmt.Fprint(&b, "\n| from the end of a job's process to the next job's, s | runs | least | median | 9 of 10 | most | median / stock |\n|---|---|---|---|---|---|---|\n")
	stock, err := r.stock.between()
	note(&b, err)
	reference := spreadOf(stock.all())
	line(&b, "stock starter, no container", stock.all(), reference)
	fresh, err := r.fresh.between()
	note(&b, err)
	line(&b, "ours, fresh container, same image", fresh.same, reference)
	line(&b, "ours, fresh container, another image", fresh.other, reference)
	reused, err := r.reused.between()
	note(&b, err)
	line(&b, "ours, container kept", reused.all(), reference)

	fmt.Fprint(&b, "\n| life of a starter, s | runs | least | median | 9 of 10 | most | median / stock |\n|---|---|---|---|---|---|---|\n")
	reference = spreadOf(r.stock.of(lifetime))
	line(&b, "stock", r.stock.of(lifetime), reference)
	line(&b, "ours, fresh container", r.fresh.of(lifetime), reference)
	line(&b, "ours, fresh container, without the binding", r.fresh.of(withoutBind), reference)
	line(&b, "ours, container kept", r.reused.of(lifetime), reference)
	for _, phase := range phases(r.reused.runs) {
		line(&b, "— "+phase, r.reused.of(func(run harness.Run) time.Duration { return run.Phases[phase] }), reference)
	}

	fmt.Fprint(&b, "\n| requests to the API server, a job | patch | watch | get |\n|---|---|---|---|\n")
	for _, s := range []struct {
		name string
		row  row
	}{{"fresh container", r.fresh}, {"container kept", r.reused}} {
		fmt.Fprintf(&b, "| %s |", s.name)
		for _, verb := range []string{"patch", "watch", "get"} {
			fmt.Fprintf(&b, " %.2f |", float64(s.row.calls[verb])/float64(max(len(s.row.runs), 1)))
		}
		b.WriteByte('\n')
	}

	fmt.Fprint(&b, "\n| peak resident memory | MiB |\n|---|---|\n")
	for _, m := range []struct{ name, comm string }{
		{"our starter", harness.Ours.StarterComm()}, {"our wrapper", harness.WrapperComm}, {"stock starter", harness.Stock.StarterComm()},
	} {
		fmt.Fprintf(&b, "| %s | %.1f |\n", m.name, float64(r.memory[m.comm])/1024)
	}
	return b.String()
}

// line is a line of a table of durations.
func line(b *strings.Builder, name string, values []time.Duration, reference spread) {
	s := spreadOf(values)
	ratio := "—"
	if reference.median > 0 {
		ratio = fmt.Sprintf("%.2f", s.median.Seconds()/reference.median.Seconds())
	}
	fmt.Fprintf(b, "| %s | %d | %.3f | %.3f | %.3f | %.3f | %s |\n", name, s.n,
		s.least.Seconds(), s.median.Seconds(), s.ninth.Seconds(), s.most.Seconds(), ratio)
}

// note says in the result that a part of it is missing.
func note(b *strings.Builder, err error) {
	if err != nil {
		fmt.Fprintf(b, "| (%v) | | | | | | |\n", err)
	}
}
