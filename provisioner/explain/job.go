package explain

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/match"
	"podstarter/provisioner/round"
)

// lines writes lines until one cannot be written.
type lines struct {
	w   io.Writer
	err error
}

func (l *lines) add(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, format+"\n", args...)
	}
}

// Job writes why a job gets a pod or none. why says why no pod is made for it
// whatever matches, or is empty. matches has what is known of each shape.
func Job(w io.Writer, rep round.Report, job *demand.Job, why string, matches []match.Explanation) error {
	l := &lines{w: w}
	l.add("The job %d.%d of the schedd %s, of %s.", job.ID.Cluster, job.ID.Proc, clean(cmp.Or(job.Schedd.String(), job.ID.Schedd)), clean(job.User))
	if job.Flocks != "" {
		l.add("%s.", upper(clean(job.Flocks)))
	}
	if why != "" {
		l.add("No pod is made for it: %s.", clean(why))
	}
	group := -1
	for i, g := range rep.Groups {
		if g.ID == job.Group {
			group = i
		}
	}
	switch {
	case group >= 0:
		g := rep.Groups[group]
		l.add("Its group is %s: %d idle jobs that match the same slots, of %d users.", g.ID, g.Idle(), len(g.Parts))
		if group < len(rep.Input.Groups) && rep.Input.Groups[group].Runtime > 0 {
			l.add("Each of them is expected to run for %s.", rep.Input.Groups[group].Runtime)
		}
	case why == "" && job.Flocks != "":
		l.add("Its group is %s, of which no idle jobs count: the schedd asks for fewer jobs than are idle, and those come first that name this pool in FlockTo.", job.Group)
	case why == "":
		l.add("Its group is %s, of which the schedds named no idle jobs a moment ago.", job.Group)
	}
	for i, m := range matches {
		l.shape(rep, group, i, m)
	}
	if group >= 0 && group < len(rep.Output.Groups) {
		l.outcome(rep.Output.Groups[group])
	}
	l.limits(rep)
	return l.err
}

// shape writes whether a shape matches, and what keeps pods of it from being made.
func (l *lines) shape(rep round.Report, group, shape int, m match.Explanation) {
	l.add("")
	if m.Matches {
		l.add("%s matches; a job requests %s.", m.Slot, m.Request)
		if group >= 0 && group < len(rep.Input.Fits) {
			for _, f := range rep.Input.Fits[group] {
				if f.Shape == shape && f.Bounded {
					l.add("  At most %d pods are made now: %s.", f.Most, clean(f.Why))
				}
			}
		}
	} else {
		l.add("%s does not match.", m.Slot)
		l.clauses("the job's Requirements", m.Job)
		l.clauses("the slot's Requirements (START and what it can give)", m.Theirs)
		if len(m.Job)+len(m.Theirs) == 0 {
			l.add("  %s.", upper(clean(m.Why)))
		}
	}
	if shape >= len(rep.Input.Shapes) {
		return
	}
	s := rep.Input.Shapes[shape]
	t := rep.Input.Templates[s.Template]
	if s.Closed != "" {
		l.add("  No pod of this shape is made: %s.", s.Closed)
	}
	if t.AllowanceWhy != "" {
		l.add("  Of %s: %s.", t.Name, t.AllowanceWhy)
	}
}

func (l *lines) clauses(whose string, all []match.Clause) {
	if len(all) == 0 {
		return
	}
	l.add("  These parts of %s do not hold:", whose)
	for _, c := range all {
		l.add("    %s", clean(c.Text))
		where := ""
		if len(c.Uses) > 0 {
			where = ", with " + clean(strings.Join(c.Uses, ", "))
		}
		l.add("      is %s%s", clean(c.Value), where)
	}
}

// outcome writes what the jobs of the group get.
func (l *lines) outcome(o decision.Outcome) {
	l.add("")
	l.add("Of the %d jobs of the group:", o.Idle)
	for _, part := range []struct {
		jobs int
		what string
	}{
		{o.Free, "have free room in a pod that runs"},
		{o.Soon, "get room that a running job leaves soon"},
		{o.Coming, "get room of a pod that is on its way"},
		{o.New, "get room of a pod that is made now"},
	} {
		if part.jobs > 0 {
			l.add("  %d %s", part.jobs, part.what)
		}
	}
	for _, r := range o.Waiting {
		l.add("  %d get nothing: %s", r.Jobs, clean(r.Why))
	}
}

// limits writes how far the limits are used.
func (l *lines) limits(rep round.Report) {
	coming := 0
	for _, p := range rep.Input.Pods {
		if p.Phase < decision.Reported {
			coming++
		}
	}
	of := func(n, limit int) string {
		if limit == 0 {
			return fmt.Sprintf("%d, without a limit", n)
		}
		return fmt.Sprintf("%d of at most %d", n, limit)
	}
	l.add("")
	l.add("Pods: %s. Of these have not reported: %s.", of(len(rep.Input.Pods), rep.Input.Limits.Pods), of(coming, rep.Input.Limits.Coming))
}

func upper(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
