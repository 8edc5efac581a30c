//go:build pool

package provisionfaults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"podstarter/integration/measured"
	"podstarter/integration/pool/controlplane"
)

// command is what the page names as its origin.
const command = "make scale-provisioner"

// phase is what one part of TestScale measured.
type phase struct {
	name       string
	took       time.Duration
	calls      map[string]int
	cpu, tools time.Duration
}

// ledger measures what a provisioner uses.
type ledger struct {
	s      *site
	p      *process
	phases []phase
}

// measure measures what the provisioner does until work returns.
func (l *ledger) measure(name string, work func()) {
	l.s.t.Helper()
	cpu, tools := l.p.used()
	began := time.Now()
	work()
	ended := time.Now()
	after, toolsAfter := l.p.used()
	ph := phase{name: name, took: ended.Sub(began), cpu: after - cpu, tools: toolsAfter - tools, calls: l.s.calls(began, ended)}
	l.phases = append(l.phases, ph)
	l.s.t.Logf("%s: %s, CPU %s, of tools %s, calls %v", name, ph.took.Round(100*time.Millisecond), ph.cpu, ph.tools, ph.calls)
}

// used returns the CPU time of the provisioner, and of the tools that it has run.
func (p *process) used() (own, tools time.Duration) {
	p.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	ticks := func(i int) time.Duration { // proc_pid_stat(5); USER_HZ is 100
		n, _ := strconv.ParseInt(fields[i-3], 10, 64)
		return time.Duration(n) * 10 * time.Millisecond
	}
	return ticks(14) + ticks(15), ticks(16) + ticks(17)
}

// most returns the most memory that the provisioner has had, in MiB.
func (p *process) most() int {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			n, _ := strconv.Atoi(f[1])
			return n >> 10
		}
	}
	return 0
}

// calls counts the site's requests to the API server, by verb and resource. A watch counts when it begins, all else when it is answered.
func (s *site) calls(from, to time.Time) map[string]int {
	s.t.Helper()
	f, err := os.Open(plane.AuditLog())
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	n := map[string]int{}
	lines := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return n // the last line is being written
		}
		var e struct {
			Stage, Verb              string
			User                     struct{ Username string }
			ObjectRef                struct{ Resource string }
			RequestReceivedTimestamp time.Time
		}
		if err := json.Unmarshal(line, &e); err != nil {
			s.t.Fatal(err)
		}
		at := e.RequestReceivedTimestamp
		if e.User.Username == "system:serviceaccount:"+controlplane.Namespace+":"+s.namespace() && !at.Before(from) && !at.After(to) && (e.Verb == "watch") == (e.Stage == "ResponseStarted") {
			n[e.Verb+" "+e.ObjectRef.Resource]++
		}
	}
}

func (s *site) counts(want int, phase string) func() error {
	return func() error {
		if n := len(s.phase(phase)); n != want {
			return fmt.Errorf("%d pods are %s", n, phase)
		}
		return nil
	}
}

// TestScale has the provisioner make and withdraw many pods, and read many jobs. It judges that all is done, and measures what it takes.
func TestScale(t *testing.T) {
	machine := measured.Machine()
	s := newSite(t, "scale", "policy: {settle: 1m}")
	first := s.prove()
	s.pace = time.Second // the API server has other things to do
	n := *size
	condor.submit(t, one, alice, s.name, fmt.Sprintf("queue %d", n))
	l := &ledger{s: s, p: s.start(t.Context())}
	l.measure(fmt.Sprintf("%d pods are made", n), func() {
		s.await("all pods", 5*time.Minute, func() error {
			if got := len(s.pods()); got != n+1 {
				return fmt.Errorf("there are %d", got)
			}
			return nil
		})
	})
	l.p.await("a round that made all", roundOf, func(r record) bool { return r.Pods == n+1 && r.Made == 0 })
	l.measure("10 s with a round that has nothing to do", func() { l.p.await("a round", roundOf, func(r record) bool { return r.Made == 0 }) })
	condor.remove(t, one, s.name, "true")
	l.p.await("a round that knows no jobs", roundOf, func(r record) bool { return r.Idle == 0 })
	s.await("the first withdrawal", 3*time.Minute, func() error {
		if len(s.pods()) == n+1 {
			return errors.New("none yet")
		}
		return nil
	})
	l.measure(fmt.Sprintf("%d pods are withdrawn", n), func() { s.await("all withdrawals", 10*time.Minute, s.counts(0, "Pending")) })
	l.p.await("the shape to be open again", 4*time.Minute, func(r record) bool { return r.Pods == 1 })
	condor.submit(t, one, alice, s.name, fmt.Sprintf("queue %d", n))
	s.await("all pods again", 6*time.Minute, s.counts(n, "Pending"))
	s.runAll()
	condor.remove(t, one, s.name, "true")
	ads := []string{slotAd(first, "Claimed")}
	for _, name := range s.phase("Running") {
		ads = append(ads, slotAd(name, "Unclaimed"))
	}
	condor.advertise(t, ads...)
	l.p.await("a round that knows them", roundOf, func(r record) bool { return r.Pods == n+1 && r.Idle == 0 })
	l.measure(fmt.Sprintf("10 s with a round, %d pods report", n), func() { l.p.await("a round", roundOf, func(record) bool { return true }) })
	condor.submit(t, one, alice, s.name, fmt.Sprintf("queue %d", n-1))
	if got := l.p.await("a round with jobs for them", roundOf, func(r record) bool { return r.Idle == n-1 }); got.Made != 0 {
		t.Errorf("%d pods are made beside %d with room", got.Made, n)
	}
	memory := l.p.most()
	l.p.kill()
	queue := s.manyJobs()
	if *docs != "" {
		// The test runs in its own directory.
		if err := measured.Write(filepath.Join(*docs, "provisioner-scale.md"), command, l.page(machine, memory, queue)); err != nil {
			t.Fatal(err)
		}
	}
}

// runAll lets KWOK run all pods.
func (s *site) runAll() {
	s.t.Helper()
	names := s.phase("Pending")
	for _, name := range names {
		s.api(http.MethodPatch, "/api/v1/namespaces/"+s.namespace()+"/pods/"+name, object{"metadata": object{"labels": object{"kwok": runs}}}, nil)
	}
	s.await("all pods to run", 5*time.Minute, s.counts(0, "Pending"))
}

// queueFigures are of a round with many jobs.
type queueFigures struct {
	jobs, kinds         int
	submitted, ask, all time.Duration
	memory              int
}

// manyJobs measures a round with many idle jobs of 500 kinds, that nothing matches.
func (s *site) manyJobs() queueFigures {
	s.t.Helper()
	const kinds = 500
	q := queueFigures{jobs: *many, kinds: kinds}
	other := newSite(s.t, "queue")
	var text strings.Builder
	fmt.Fprintf(&text, "request_memory = $(KIND)\nqueue %d KIND from (\n", *many/kinds)
	for i := range kinds {
		fmt.Fprintf(&text, "%d\n", 100+i)
	}
	began := time.Now()
	condor.submit(s.t, one, alice, other.name, text.String()+")")
	q.submitted = time.Since(began)
	began = time.Now()
	condor.must(s.t, "", "", "condor_q", "-allusers", "-name", condor.schedds[one], "-constraint", fmt.Sprintf("ProvisionTest == %q", other.name), "-group-by", "-attributes", "RequestMemory,Requirements,User", "-long")
	q.ask = time.Since(began)
	ctx, cancel := context.WithTimeout(s.t.Context(), roundOf)
	defer cancel()
	cmd := other.command(ctx, "-dry-run")
	began = time.Now()
	out, err := cmd.Output()
	q.all = time.Since(began)
	if err != nil {
		s.t.Fatal(err)
	}
	if got := len(column.FindAllString(string(out), -1)); got != kinds {
		s.t.Errorf("%d groups are known, want %d", got, kinds)
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		q.memory = int(usage.Maxrss >> 10)
	}
	s.t.Logf("%d jobs of %d kinds: submitted in %s, condor_q %s, a round %s, %d MiB", q.jobs, q.kinds, q.submitted.Round(time.Second), q.ask.Round(10*time.Millisecond), q.all.Round(10*time.Millisecond), q.memory)
	return q
}

// page is what is written into the page.
func (l *ledger) page(machine string, memory int, q queueFigures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, with %s.\n\n", time.Now().UTC().Format(time.DateOnly), machine)
	fmt.Fprintln(&b, "| what | time | calls to the API server | CPU of the provisioner | CPU of HTCondor's tools |\n| --- | --- | --- | --- | --- |")
	for _, p := range l.phases {
		var calls []string
		for _, kind := range slices.Sorted(maps.Keys(p.calls)) {
			calls = append(calls, fmt.Sprintf("%d %s", p.calls[kind], kind))
		}
		text := strings.Join(calls, ", ")
		if text == "" {
			text = "none"
		}
		fmt.Fprintf(&b, "| %s | %.1f s | %s | %.2f s | %.2f s |\n", p.name, p.took.Seconds(), text, p.cpu.Seconds(), p.tools.Seconds())
	}
	fmt.Fprintf(&b, "\nThe provisioner had at most %d MiB of memory.\n\n", memory)
	fmt.Fprintf(&b, "With %d idle jobs of %d kinds, a whole round from the start of the program takes %.1f s and at most %d MiB. Of that, the schedd and `condor_q` take %.1f s.\n",
		q.jobs, q.kinds, q.all.Seconds(), q.memory, q.ask.Seconds())
	return b.String()
}
