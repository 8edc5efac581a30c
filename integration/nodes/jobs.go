package nodes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// jobs are the jobs of one cluster id.
type jobs struct {
	site    site
	cluster string
	count   int
	log     string
}

// Pods of the execution points, on the first node; those of the second have names that end in -2.
const (
	ours  = "glidein"
	stock = "glidein-stock"
)

// submit submits jobs for the execution points of one kind, which prefer those of the second node. Each prints a line when it
// begins and one when it has slept.
func submit(ctx context.Context, s site, pod string, count int, sleep, lease time.Duration) (jobs, error) {
	name := fmt.Sprintf("%s-%d", pod, time.Now().UnixNano())
	text := fmt.Sprintf(`executable = /bin/sh
transfer_executable = false
arguments = "-c 'echo begin; sleep %d; echo end'"
should_transfer_files = yes
output = /tmp/%s.$(Process)
log = /tmp/%[2]s.log
requirements = regexp("@%[3]s(-2)?(@|$)", TARGET.Name)
rank = regexp("-2(@|$)", TARGET.Name)
job_lease_duration = %[4]d
leave_in_queue = false
queue %[5]d
`, int(sleep.Seconds()), name, pod, int(lease.Seconds()), count)
	out, err := s.ap(ctx, text, "condor_submit", "-terse", "-")
	if err != nil {
		return jobs{}, err
	}
	cluster, _, ok := strings.Cut(strings.TrimSpace(out), ".")
	if !ok {
		return jobs{}, fmt.Errorf("submitting jobs: condor_submit says %q", out)
	}
	return jobs{site: s, cluster: cluster, count: count, log: "/tmp/" + name + ".log"}, nil
}

// events are those of each job, by its number.
func (j jobs) events(ctx context.Context) (map[int][]harness.Event, error) {
	text, err := j.site.ap(ctx, "", "cat", j.log)
	if err != nil {
		return nil, err
	}
	all, err := harness.ParseEvents(text)
	if err != nil {
		return nil, err
	}
	by := map[int][]harness.Event{}
	for _, e := range all {
		by[e.Proc] = append(by[e.Proc], e)
	}
	return by, nil
}

// often is how many events of a kind a job has.
func often(events []harness.Event, number int) int {
	n := 0
	for _, e := range events {
		if e.Number == number {
			n++
		}
	}
	return n
}

// await waits until each job has an event so often, and returns how long that took.
func (j jobs) await(ctx context.Context, number, n int) (time.Duration, error) {
	began := time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var last map[int][]harness.Event
	for {
		if by, err := j.events(ctx); err == nil {
			last = by
		}
		missing := j.count
		for _, events := range last {
			if often(events, number) >= n {
				missing--
			}
		}
		if missing == 0 {
			return time.Since(began), nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%d of %d jobs of the cluster %s have no event %03d, number %d: %w\n%s",
				missing, j.count, j.cluster, number, n, context.Cause(ctx), summary(last))
		case <-tick.C:
		}
	}
}

// summary is a line of headlines for each job.
func summary(by map[int][]harness.Event) string {
	var b strings.Builder
	for _, proc := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(&b, "  job %d:", proc)
		for _, e := range by[proc] {
			if e.Number != harness.EventImageSize {
				fmt.Fprintf(&b, " %03d at %s;", e.Number, e.Stamp)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// verdict says what is wrong with jobs that have ended: each must have ended once, well, with all of its output, and have
// begun at least, and at most, so often.
func (j jobs) verdict(ctx context.Context, least, most int) []string {
	by, err := j.events(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	var wrong []string
	for proc := range j.count {
		events := by[proc]
		if n := often(events, harness.EventTerminated); n != 1 {
			wrong = append(wrong, fmt.Sprintf("job %d ended %d times", proc, n))
		}
		if n := often(events, harness.EventExecute); n < least || n > most {
			wrong = append(wrong, fmt.Sprintf("job %d began %d times, not %d to %d", proc, n, least, most))
		}
		for _, e := range events {
			if e.Number == harness.EventTerminated && !strings.Contains(e.Text(), "(return value 0)") {
				wrong = append(wrong, fmt.Sprintf("job %d: %s", proc, e.Text()))
			}
			if e.Number == harness.EventHeld {
				wrong = append(wrong, fmt.Sprintf("job %d was held: %s", proc, e.Text()))
			}
		}
		out, err := j.site.ap(ctx, "", "cat", strings.TrimSuffix(j.log, ".log")+"."+strconv.Itoa(proc))
		if err != nil || out != "begin\nend\n" {
			wrong = append(wrong, fmt.Sprintf("job %d printed %q, %v", proc, out, err))
		}
	}
	if len(wrong) > 0 {
		wrong = append(wrong, summary(by))
	}
	return wrong
}

// remove removes the jobs that are left.
func (j jobs) remove(ctx context.Context) error {
	_, err := j.site.ap(ctx, "", "sh", "-c", "condor_rm "+j.cluster+" 2>/dev/null || true")
	return err
}
