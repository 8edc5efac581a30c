package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/integration/harness"
)

// Run is a case on one side.
type Run struct {
	Case  Case
	Pool  *harness.Pool
	Side  harness.Side
	Jobs  []harness.Job
	acted time.Time // when the last thing was done to the job, zero before the first
	marks harness.LogMarks
	found Observation
}

// Job is the first, and most often the only, job.
func (r *Run) Job() harness.Job { return r.Jobs[0] }

// Observation is everything of a case under one starter that is compared, without
// anything particular to one run.
type Observation struct {
	Jobs []Record // one for each job of the cluster
	// The rest, by name: what came back, what the job saw, what tools said, what
	// steps noted.
	Files, Seen, Tools, Notes map[string]string
	Sent                      map[string]string // contents of files of the submit directory before the job
	Waits                     map[string]Waited // of steps
}

// Record is what HTCondor keeps of one job.
type Record struct {
	Events []string
	// Attributes by lower-case name: of the schedd's history, and of the history
	// that the startd keeps.
	History, Startd map[string]string
}

// Execute submits the case on one side, carries out its steps, waits for its end
// and gathers what is compared. It returns the run with an error too, so that there
// is something to describe.
func Execute(ctx context.Context, pool *harness.Pool, c Case, side harness.Side, probe harness.File) (*Run, error) {
	r := &Run{Case: c, Pool: pool, Side: side, found: Observation{
		Tools: map[string]string{}, Notes: map[string]string{}, Waits: map[string]Waited{}, Seen: map[string]string{},
	}}
	var err error
	if r.marks, err = pool.MarkLogs(side); err != nil {
		return r, err
	}
	web, err := pool.Web()
	if err != nil {
		return r, err
	}
	submission := c.Submission(side, probe)
	submission.Commands = web.Macros(submission.Commands) + submission.Commands
	if r.Jobs, err = pool.Submit(ctx, submission); err != nil {
		return r, err
	}
	for i, step := range c.Steps {
		began := time.Now()
		if err := step.do(ctx, r); err != nil {
			return r, fmt.Errorf("step %d (%s): %w", i+1, step.Words, err)
		}
		if !step.waits {
			r.acted = began
			continue
		}
		if !r.acted.IsZero() {
			r.found.Waits[fmt.Sprintf("step %d, %s", i+1, step.Words)] = Waited{time.Since(r.acted), step.about}
		}
	}
	if err := r.end(ctx); err != nil {
		return r, err
	}
	return r, r.gather(ctx)
}

// end waits until the jobs have left the queue, and removes those on hold: only
// jobs that leave the queue get into the history.
func (r *Run) end(ctx context.Context) error {
	if r.Case.Spooled {
		return nil
	}
	for _, job := range r.Jobs {
		end, err := job.WaitEnding(ctx)
		if err != nil {
			return err
		}
		if !end.Held {
			continue
		}
		if err := job.Tool(ctx, "condor_rm"); err != nil {
			return err
		}
		if _, err := job.WaitEvent(ctx, harness.EventAborted, 1); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) gather(ctx context.Context) error {
	for _, job := range r.Jobs {
		ad, err := job.History(ctx)
		if err != nil {
			return err
		}
		events, err := job.Events()
		if err != nil {
			return err
		}
		record := Record{Events: Events(events, job), History: History(ad, job), Startd: map[string]string{}}
		runs := 0
		for _, e := range events {
			if e.Number == harness.EventExecute {
				runs++
			}
		}
		if (runs > 0 || r.Case.Spooled) && !r.Case.Stuck {
			ad, err := job.StartdHistory(ctx, max(runs, 1), lastShadow(ad))
			if err != nil {
				return err
			}
			record.Startd = History(ad, job)
		}
		r.found.Jobs = append(r.found.Jobs, record)
	}
	var err error
	if r.found.Files, err = files(r.Jobs, r.Case.Facts); err != nil {
		return err
	}
	r.found.Sent = map[string]string{}
	for _, f := range r.Case.Files {
		if f.Sparse == 0 {
			r.found.Sent[words(f.Name, r.Job())] = content(f.Content, r.Job())
		}
	}
	if r.Case.Facts {
		f, err := r.Job().Facts("out")
		if err != nil {
			return err
		}
		maps.Copy(r.found.Seen, Seen(f, r.Job()))
	}
	r.found.drop(chancesWith(r.Case.Fleeting, r.Pool.Versions))
	return nil
}

// lastShadow is the number of the shadow under which a job came to its end, or 0 if that
// is not sure: a job that was removed may have ended under an earlier one, and a shadow
// that reconnects counts although the startd has no other run.
func lastShadow(history *classads.Ad) int64 {
	const completed = 4
	if history.IntOr("JobStatus", 0) != completed || history.Has("JobDisconnectedDate") || history.Has("TotalJobReconnectAttempts") {
		return 0
	}
	return history.IntOr("NumShadowStarts", 0)
}

// drop leaves out what chance decides about.
func (o *Observation) drop(fleeting []Chance) {
	for i := range o.Jobs {
		o.Jobs[i].Events = slices.DeleteFunc(o.Jobs[i].Events, func(line string) bool { return leftToChance(fleeting, line) })
		for _, m := range []map[string]string{o.Jobs[i].History, o.Jobs[i].Startd} {
			maps.DeleteFunc(m, func(key, _ string) bool { return leftToChance(fleeting, key) })
		}
	}
	for _, m := range []map[string]string{o.Files, o.Seen, o.Tools, o.Notes} {
		maps.DeleteFunc(m, func(key, _ string) bool { return leftToChance(fleeting, key) })
	}
}

// Both runs a case on both sides at the same time and returns what was observed.
func Both(ctx context.Context, pool *harness.Pool, world World, c Case, probe harness.File) (stock, ours Observation, err error) {
	patience := c.Patience
	if patience == 0 {
		patience = Patience
	}
	patience *= time.Duration(world.Patience)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the case took longer than %s", patience))
	defer cancel()
	type side struct {
		run *Run
		err error
	}
	execute := func(of harness.Side) side {
		run, err := Execute(ctx, pool, c, of, probe)
		return side{run, err}
	}
	other := make(chan side, 1)
	go func() { other <- execute(c.reference()) }()
	b := execute(harness.Ours)
	a := <-other
	if a.err == nil && b.err == nil {
		return a.run.found, b.run.found, nil
	}
	var all []error
	for _, s := range []side{a, b} {
		s.run.remove()
		what := "went well"
		if s.err != nil {
			what = s.err.Error()
		}
		all = append(all, fmt.Errorf("%s side: %s\n%s", s.run.Side, what, s.run.describe()))
	}
	return a.run.found, b.run.found, errors.Join(all...)
}

// remove removes the jobs of a failed run from the queue, so that they do not
// hinder others.
func (r *Run) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if len(r.Jobs) > 0 {
		_, _ = r.Pool.AP(ctx, "condor_rm", "-constraint", fmt.Sprintf("ClusterId == %d", r.Job().Cluster))
	}
}

// describe returns what helps to understand a failed run.
func (r *Run) describe() string {
	var b strings.Builder
	for _, job := range r.Jobs[:min(len(r.Jobs), 2)] {
		b.WriteString(job.Describe())
	}
	for name, value := range r.found.Tools {
		fmt.Fprintf(&b, "%s: %s\n", name, value)
	}
	return b.String()
}

// Compare lists the differences between two observations of a case. One side may wait
// so much longer than the other for claims.
func Compare(name string, stock, ours Observation, grace time.Duration) []Difference {
	var found []Difference
	for i := range min(len(stock.Jobs), len(ours.Jobs)) {
		a, b := stock.Jobs[i], ours.Jobs[i]
		of := slices.Concat(Lines(name, a.Events, b.Events), Values(name, InHistory, a.History, b.History))
		// A job that began on one side only has nothing to compare with. The events show it.
		if len(a.Startd) > 0 && len(b.Startd) > 0 {
			of = append(of, Values(name, InStartd, a.Startd, b.Startd)...)
		}
		for j := range of {
			of[j].Proc = i
		}
		found = append(found, of...)
	}
	return slices.Concat(found,
		Values(name, InFiles, stock.Files, ours.Files),
		Values(name, InSeen, stock.Seen, ours.Seen),
		Values(name, InTools, stock.Tools, ours.Tools),
		Values(name, InNotes, stock.Notes, ours.Notes),
		Waits(name, stock.Waits, ours.Waits, grace))
}

// slotLine is where an execute event tells the slot, scratchLine the sandbox.
var (
	slotLine    = regexp.MustCompile(`^\s*SlotName: (slot\d+(?:_\d+)?)@`)
	scratchLine = regexp.MustCompile(`^\s*CondorScratchDir = "(.*)"`)
)

// Slot is the name, without the machine, of the slot in which the job runs or ran
// last, and the path of its sandbox there.
func (r *Run) Slot() (slot, scratch string, err error) {
	events, err := r.Job().Events()
	if err != nil {
		return "", "", err
	}
	for _, e := range events {
		if e.Number != harness.EventExecute {
			continue
		}
		for _, line := range e.Body {
			if m := slotLine.FindStringSubmatch(line); m != nil {
				slot = m[1]
			}
			if m := scratchLine.FindStringSubmatch(line); m != nil {
				scratch = m[1]
			}
		}
	}
	if slot == "" || scratch == "" {
		return slot, scratch, fmt.Errorf("job %s: no execute event tells the slot and the sandbox: %s", r.Job().ID(), harness.Headlines(events))
	}
	return slot, scratch, nil
}
