package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// completed is JobStatus of a job that has left the queue by itself.
const completed = 4

// Check finds everything in the evidence that must not be, and missing evidence: a
// run about which nothing is known has not passed.
func Check(e Evidence) []Violation {
	c := &checker{Evidence: e}
	c.enough()
	c.events()
	c.results()
	c.activations()
	c.leases()
	c.updates()
	c.sightings()
	c.ahead()
	c.slots()
	for _, what := range e.Left {
		c.found(Leftover, "%s", what)
	}
	return c.violations
}

type checker struct {
	Evidence
	violations []Violation
}

func (c *checker) found(kind, format string, args ...any) {
	c.violations = append(c.violations, Violation{kind, fmt.Sprintf(format, args...)})
}

// enough makes sure that there is something to judge by.
func (c *checker) enough() {
	for _, is := range []struct {
		what string
		n    int
	}{
		{"jobs", len(c.Jobs)}, {"events", len(c.Events)}, {"history ads", len(c.History)}, {"outputs of jobs", len(c.Accounts)},
		{"activations", len(c.Activations)}, {"sightings of payloads", len(c.Sightings)},
		{"images in the pod's spec", len(c.Specs)}, {"patches of the pod", len(c.Patches)}, {"users of payloads", len(c.Users)},
		{"notes about containers", len(c.Slots)},
	} {
		if is.n == 0 {
			c.found(NoEvidence, "there are no %s", is.what)
		}
	}
	kinds := []string{KindStarter, KindWrapper, KindPayload}
	if c.Pullers {
		kinds = append(kinds, KindPuller)
		if c.Fetches == 0 {
			c.found(NoEvidence, "no image was fetched")
		}
	}
	for _, kind := range kinds {
		if !slices.ContainsFunc(c.Kills, func(k Kill) bool { return k.Kind == kind }) {
			c.found(NoEvidence, "no %s was killed", kind)
		}
	}
}

// events follows each job through the event log: submitted, then runs that begin
// and end, then one end.
func (c *checker) events() {
	type life struct {
		submitted, running bool
		runs, ends         int
	}
	lives := map[string]*life{}
	for _, job := range c.Jobs {
		lives[job.ID] = &life{}
	}
	for _, event := range c.Events {
		id := fmt.Sprintf("%d.%d", event.Cluster, event.Proc)
		l, ok := lives[id]
		if !ok {
			c.found(Wrong, "the log has an event of job %s, which was not submitted: %s", id, event.Headline)
			continue
		}
		if l.ends > 0 && event.Number != harness.EventFileTransfer {
			c.found(Wrong, "job %s has an event after its end: %s", id, event.Headline)
		}
		switch event.Number {
		case harness.EventSubmit:
			l.submitted = true
		case harness.EventExecute:
			if l.running {
				c.found(Twice, "job %s began to execute at %s while it was executing", id, event.Stamp)
			}
			l.running = true
			l.runs++
		case harness.EventEvicted, harness.EventShadowException, harness.EventReconnectFailed:
			l.running = false
		case harness.EventTerminated:
			if !l.running {
				c.found(Wrong, "job %s terminated at %s without executing", id, event.Stamp)
			}
			l.running = false
			l.ends++
		case harness.EventAborted, harness.EventHeld:
			c.found(Lost, "job %s at %s: %s", id, event.Stamp, event.Text())
			l.running = false
		}
	}
	ran := map[string]int{}
	for _, a := range c.Activations {
		if !a.Started.IsZero() {
			ran[a.Job]++
		}
	}
	for _, job := range c.Jobs {
		l := lives[job.ID]
		switch {
		case !l.submitted:
			c.found(NoEvidence, "the log does not say that job %s was submitted", job.ID)
		case l.ends == 0:
			c.found(Lost, "job %s has not terminated", job.ID)
		case l.ends > 1:
			c.found(Wrong, "job %s terminated %d times", job.ID, l.ends)
		}
		if ran[job.ID] == 0 {
			c.found(NoEvidence, "no starter's log tells that job %s was started", job.ID)
		}
		// The shadow hears of a start before it happens, so there may be more
		// executes in the log than starts.
		if ran[job.ID] > l.runs {
			c.found(Twice, "job %s was started %d times, but its log knows of %d", job.ID, ran[job.ID], l.runs)
		}
	}
}

// results compares the result of each job with the expected one.
func (c *checker) results() {
	endings := map[string]harness.Ending{}
	for _, event := range c.Events {
		if ending, ok := harness.EndingOf(event); ok && event.Number == harness.EventTerminated {
			endings[fmt.Sprintf("%d.%d", event.Cluster, event.Proc)] = ending
		}
	}
	layers := map[string]string{}
	for _, job := range c.Jobs {
		want := codeOf(job)
		if ending := endings[job.ID]; !ending.Exited || ending.Code != want {
			c.found(Wrong, "job %s: %s, want exit code %d", job.ID, ending, want)
		}
		final, ok := c.History[job.ID]
		if !ok {
			c.found(Lost, "job %s is not in the history", job.ID)
		} else if (final != Final{Status: completed, ExitCode: want}) {
			c.found(Wrong, "the history of job %s says %+v, want exit code %d", job.ID, final, want)
		}
		a, ok := c.Accounts[job.ID]
		if !ok {
			c.found(Lost, "job %s has no output", job.ID)
			continue
		}
		c.account(job, a)
		if other, taken := layers[a.Layer]; taken || a.Layer == "" {
			c.found(Shared, "jobs %s and %s ran in the same container, root file system %q", job.ID, orNone(other), a.Layer)
		}
		layers[a.Layer] = job.ID
	}
}

func (c *checker) account(job Job, a Account) {
	if a.Job != job.ID || a.Digest != job.Digest || a.Image != job.Image || !a.Ended {
		c.found(Wrong, "the output of job %s is of job %q, image %q, input %.8s, ended %t; want image %q, input %.8s",
			job.ID, a.Job, a.Image, a.Digest, a.Ended, job.Image, job.Digest)
	}
	own := false
	for _, name := range a.Files {
		own = own || name == job.Input
		if name != job.Input && strings.HasPrefix(name, inputPrefix) {
			c.found(Met, "job %s found %s in its directory", job.ID, name)
		}
	}
	if !own {
		c.found(Wrong, "job %s did not find %s in its directory, but %q", job.ID, job.Input, a.Files)
	}
	if met := slices.Concat(a.Others, a.Met, a.Readable); len(met) > 0 {
		c.found(Met, "job %s, user %d, met %q", job.ID, a.UID, met)
	}
}

// inputPrefix begins the names of all input files.
const inputPrefix = "in."

// activations looks at the end of each. The test must have killed one that was cut
// short.
func (c *checker) activations() {
	killed := map[int]bool{}
	for _, k := range c.Kills {
		if k.Kind == KindStarter {
			killed[k.PID] = true
		}
	}
	for _, a := range c.Activations {
		switch {
		case a.Exit == "":
			c.found(NoEnd, "%s, which began at %s: the startd did not see it end", a, a.Began.Format(stamp))
		case strings.HasPrefix(a.Exit, "signal"):
			if !killed[a.PID] {
				c.found(Unexplained, "%s ended by %s, and nobody had killed it", a, a.Exit)
			}
		case a.Ended.IsZero():
			c.found(NoEnd, "%s has no last line in its log, but exit %s", a, a.Exit)
		case a.Leased.IsZero() != a.Released.IsZero():
			c.found(NoEnd, "%s ended without giving its container back", a)
		}
		if !a.Started.IsZero() && (a.Job == "" || a.Leased.IsZero() || a.Container == "") {
			c.found(Overlap, "%s started a payload without a lease", a)
		}
	}
}

// span is a time in which an activation certainly had its lease.
func (c *checker) span(a Activation) (interval, bool) {
	if a.Leased.IsZero() {
		return interval{}, false
	}
	end := a.Released
	if end.IsZero() {
		// It was killed: it had the lease until then, if it had it at all.
		for _, k := range c.Kills {
			if k.Kind == KindStarter && k.PID == a.PID {
				end = k.Time
			}
		}
	}
	if end.Before(a.Leased) {
		end = a.Leased
	}
	return interval{a.Leased, end}, true
}

// leases makes sure that no container had two leases at a time, and no job two
// activations.
func (c *checker) leases() {
	type held struct {
		interval
		Activation
	}
	containers, jobs := map[string][]held{}, map[string][]held{}
	for _, a := range c.Activations {
		span, ok := c.span(a)
		if !ok {
			continue
		}
		containers[a.Container] = append(containers[a.Container], held{span, a})
		if a.Job != "" {
			jobs[a.Job] = append(jobs[a.Job], held{span, a})
		}
	}
	compare := func(kind string, groups map[string][]held) {
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			all := groups[name]
			for i, a := range all {
				for _, b := range all[i+1:] {
					if a.overlaps(b.interval) {
						c.found(kind, "%s: %s from %s, and %s from %s", name, a.Activation, a.interval, b.Activation, b.interval)
					}
				}
			}
		}
	}
	compare(Overlap, containers)
	compare(Twice, jobs)
}

// writer is who wrote an image into the pod's spec.
type writer struct {
	spec string
	time time.Time // when it had the lease
	who  string
	// sure says that it has written; otherwise it was about to, and was killed.
	sure bool
}

// updates checks that the pod has what each container's latest binding wrote:
// starters of other containers patch the same object. A starter that was killed may
// not have written.
func (c *checker) updates() {
	bindings := map[string][]writer{}
	for _, a := range c.Activations {
		if a.Spec != "" {
			bindings[a.Container] = append(bindings[a.Container], writer{a.Spec, a.Leased, a.String(), !strings.HasPrefix(a.Exit, "signal")})
		}
	}
	for _, a := range c.Ahead {
		bindings[a.Container] = append(bindings[a.Container], writer{a.Spec, a.Time, fmt.Sprintf("starter %d, ahead,", a.PID), true})
	}
	for _, container := range slices.Sorted(maps.Keys(c.Specs)) {
		all := bindings[container]
		slices.SortFunc(all, func(a, b writer) int { return b.time.Compare(a.time) })
		if len(all) == 0 {
			c.found(NoEvidence, "nothing was bound to container %s", container)
			continue
		}
		possible := all[:1]
		for len(possible) < len(all) && !possible[len(possible)-1].sure {
			possible = all[:len(possible)+1]
		}
		if !slices.ContainsFunc(possible, func(w writer) bool { return w.spec == c.Specs[container] }) && !c.mayBeAhead(c.Specs[container], all[0].time) {
			c.found(LostUpdate, "container %s has the image %s, but %s wrote %s", container, c.Specs[container], all[0].who, all[0].spec)
		}
	}
	if !slices.ContainsFunc(c.Patches, func(p Patch) bool { return p.Code == http.StatusOK }) {
		c.found(NoEvidence, "no patch succeeded")
	}
}

// sightings checks the same by the observed processes of payloads: one user ID and
// one container belong to one job at a time, and a job to one user.
func (c *checker) sightings() {
	seen := slices.Clone(c.Sightings)
	slices.SortStableFunc(seen, func(a, b Sighting) int { return cmp.Or(a.First.Compare(b.First), a.PID-b.PID) })
	owners := map[string]string{}
	for i, a := range seen {
		if a.Job == "" {
			continue
		}
		for _, b := range seen[i+1:] {
			if b.Job == "" || !(interval{a.First, a.Last}).meets(interval{b.First, b.Last}) {
				continue
			}
			switch {
			case a.Job != b.Job && a.UID == b.UID:
				c.found(Shared, "jobs %s and %s ran as user %d at %s", a.Job, b.Job, a.UID, b.First.Format(stamp))
			case a.Job == b.Job && (a.UID != b.UID || a.Container != b.Container):
				c.found(Twice, "job %s ran as users %d and %d in %s and %s at %s", a.Job, a.UID, b.UID, a.Container, b.Container, b.First.Format(stamp))
			}
		}
		if other, ok := owners[a.Container]; ok && other != a.Job {
			c.found(Shared, "jobs %s and %s were seen in container %s", other, a.Job, a.Container)
		}
		owners[a.Container] = a.Job
	}
}
