// Package changes logs what rounds saw and did. What stays as it is, is said once
// and not in each round.
//
// The messages and the keys are the same in all versions, so that a site can search
// for them: pod, template, shape, group, users, jobs, cause, reason, source, error.
package changes

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/explain"
	"podstarter/provisioner/round"
)

// Bounds of what one round says.
const (
	maxLines = 50 // of each kind
	maxUsers = 5
	maxText  = 2000 // bytes
	// again is after how long something is said again that comes and goes.
	again = time.Hour
)

// Log logs rounds. Only one goroutine may use it.
type Log struct {
	log *slog.Logger
	// told has, for each group and each set of causes, when it was said.
	told map[string]map[string]time.Time
	// states, takes and errors are those said last, by template and source.
	states, takes map[string]string
	errors        map[round.Source]string
	// smaller has what was said last of shapes whose pods offer less than they should.
	smaller map[string]string
	// round is the summary said last.
	round   string
	roundAt time.Time
	offers  offers
}

// New returns a log that has said nothing yet.
func New(log *slog.Logger) *Log {
	return &Log{log: log, told: map[string]map[string]time.Time{}, states: map[string]string{}, takes: map[string]string{}, errors: map[round.Source]string{}, smaller: map[string]string{}}
}

// Round logs what is new in a round. templates are the names of those of its
// back-off.
func (l *Log) Round(rep round.Report, templates []string) {
	l.problems(rep)
	for i, s := range rep.Backoff {
		if i < len(templates) {
			l.template(templates[i], s, rep.At)
		}
	}
	for i, u := range rep.Untaken {
		if i < len(templates) {
			l.untaken(templates[i], u, rep.At)
		}
	}
	if !rep.Unknown {
		l.sizes(rep)
		l.groups(rep)
		l.acts(rep)
		l.offline(rep)
	}
	l.summary(rep)
}

func (l *Log) problems(rep round.Report) {
	now := map[round.Source][]string{}
	for _, p := range rep.Problems {
		now[p.Source] = append(now[p.Source], p.Err.Error())
	}
	for _, s := range round.Sources {
		text := clean(strings.Join(now[s], "; "))
		switch {
		case text == l.errors[s]:
		case text == "":
			l.log.Info("An error is over", "source", string(s))
		default:
			l.log.Error("A round met an error", "source", string(s), "error", text)
		}
		l.errors[s] = text
	}
}

func (l *Log) template(name string, s backoff.State, now time.Time) {
	state, waits := "", s.Failures > 0 && now.Before(s.Until)
	switch {
	case waits:
		state = fmt.Sprintf("waits %s %d", s.Reason, s.Failures)
	case s.Failures > 0:
		state = "tries"
	case !s.LastReport.IsZero():
		state = "works"
	}
	before := l.states[name]
	l.states[name] = state
	switch {
	case state == before:
	case waits:
		l.log.Warn("No pod of a template is made for a while", "template", name, "reason", string(s.Reason), "failures", s.Failures, "until", s.Until.UTC())
	case state == "tries":
		l.log.Info("A pod of a template is tried again", "template", name, "reason", string(s.Reason), "failures", s.Failures)
	case state == "works":
		l.log.Info("A template works", "template", name)
	}
}

// sizes says which pods offer less than their template says.
func (l *Log) sizes(rep round.Report) {
	now := map[string]string{}
	for _, s := range rep.Smaller {
		shape := rep.Shapes[s.Shape]
		if now[shape] = s.Offers.String(); now[shape] != l.smaller[shape] {
			l.log.Warn("The slots of pods have less than their template says, and jobs count on no more than they have", "shape", shape, "says", s.Says.String(), "has", s.Offers.String())
		}
	}
	for shape := range l.smaller {
		if now[shape] == "" {
			l.log.Info("The slots of pods are taken to have what their template says", "shape", shape)
		}
	}
	l.smaller = now
}

// untaken says that jobs take no pods of a template.
func (l *Log) untaken(name string, u round.Untaken, now time.Time) {
	s := u.State
	state, waits := "", s.Failures > 0 && now.Before(s.Until)
	switch {
	case waits:
		state = fmt.Sprintf("waits %d", s.Failures)
	case s.Failures > 0:
		state = "tries"
	}
	before := l.takes[name]
	l.takes[name] = state
	switch {
	case state == before:
	case waits:
		l.log.Warn("No pod of a template is made for a while", "template", name, "reason", string(s.Reason), "pods", u.Left, "until", s.Until.UTC())
	case state == "tries":
		l.log.Info("A pod of a template is tried again", "template", name, "reason", string(s.Reason), "pods", u.Left)
	default:
		l.log.Info("Jobs take the pods of a template again", "template", name)
	}
}

// groups says why jobs get no pod, and that they get one after all.
func (l *Log) groups(rep round.Report) {
	there := map[string]bool{}
	lines, left := 0, 0
	for i, g := range rep.Groups {
		if i >= len(rep.Output.Groups) {
			break
		}
		there[g.ID] = true
		o := rep.Output.Groups[i]
		var causes []string
		jobs := 0
		for _, r := range o.Waiting {
			jobs += r.Jobs
			if !slices.Contains(causes, string(r.Cause)) {
				causes = append(causes, string(r.Cause))
			}
		}
		slices.Sort(causes)
		if !l.isNew(g.ID, strings.Join(causes, " "), rep.At) {
			continue
		}
		if lines++; lines > maxLines {
			left++
			continue
		}
		if jobs == 0 {
			l.log.Info("Jobs get places", "group", g.ID, "users", users(g), "jobs", o.Idle)
			continue
		}
		l.log.Info("Jobs get no pod", "group", g.ID, "users", users(g), "jobs", jobs, "cause", strings.Join(causes, " "), "reason", why(o))
	}
	if left > 0 {
		l.log.Info("Other groups get something else than before", "groups", left)
	}
	for id := range l.told {
		if !there[id] {
			delete(l.told, id)
		}
	}
}

// why is the reasons of a group's jobs that get no pod.
func why(o decision.Outcome) string {
	var reasons []string
	for _, r := range o.Waiting {
		reasons = append(reasons, fmt.Sprintf("%d: %s", r.Jobs, r.Why))
	}
	return clean(strings.Join(reasons, "; "))
}

// isNew reports whether causes of a group have to be said. A group that never had to
// wait has nothing to say.
func (l *Log) isNew(group, causes string, now time.Time) bool {
	told := l.told[group]
	if told == nil {
		if causes == "" {
			return false
		}
		told = map[string]time.Time{}
		l.told[group] = told
	}
	if at, known := told[causes]; known && now.Sub(at) < again && !now.Before(at) {
		return false
	}
	if len(told) >= maxLines { // causes are few; their sets could be many
		clear(told)
	}
	told[causes] = now
	return true
}

// acts says what was decided and done.
func (l *Log) acts(rep round.Report) {
	for i, c := range rep.Output.Create {
		if i == maxLines {
			l.log.Info("Other pods are needed", "kinds", len(rep.Output.Create)-i)
			break
		}
		l.log.Info("Pods are needed", "shape", rep.Shapes[c.Shape], "pods", c.Count, "users", clean(c.User), "group", groupOf(rep, c))
	}
	for _, name := range rep.Made {
		l.log.Info("A pod is made", "pod", clean(name))
	}
	reasons := map[string]string{}
	withdrawn := rep.Output.Withdraw
	if rep.Offline != nil {
		withdrawn = rep.Offline.Withdraw
	}
	for _, w := range withdrawn {
		reasons[rep.Input.Pods[w.Pod].ID] = w.Why
	}
	for _, name := range rep.Withdrawn {
		l.log.Info("A pod is withdrawn", "pod", clean(name), "reason", clean(reasons[name]))
	}
	for _, name := range rep.Removed {
		l.log.Warn("A pod is ended that has never reported to the collector", "pod", clean(name))
	}
	for i, f := range rep.Failed {
		if i == maxLines {
			l.log.Warn("Other pods came to nothing", "pods", len(rep.Failed)-i)
			break
		}
		l.log.Warn("A pod came to nothing", "pod", clean(f.Unit), "template", clean(f.Template), "reason", string(f.Reason), "detail", clean(f.Detail))
	}
}

func groupOf(rep round.Report, c decision.Creation) string {
	if c.Group < len(rep.Groups) {
		return rep.Groups[c.Group].ID
	}
	return ""
}

// summary says in numbers what a round was like, if they are not those of the round
// before.
func (l *Log) summary(rep round.Report) {
	idle, waiting := 0, 0
	for _, o := range rep.Output.Groups {
		idle += o.Idle
		for _, r := range o.Waiting {
			waiting += r.Jobs
		}
	}
	text := fmt.Sprint(len(rep.Groups), idle, waiting, len(rep.Input.Pods), len(rep.Made), len(rep.Withdrawn), len(rep.Failed), rep.Unknown)
	if text == l.round && rep.At.Sub(l.roundAt) < again {
		return
	}
	l.round, l.roundAt = text, rep.At
	l.log.Info("A round is done", "groups", len(rep.Groups), "jobs", idle, "without", waiting, "pods", len(rep.Input.Pods),
		"made", len(rep.Made), "withdrawn", len(rep.Withdrawn), "failed", len(rep.Failed), "unknown", rep.Unknown, "seconds", rep.Took.Seconds())
}

// users names some of a group's users.
func users(g demand.Group) string {
	var names []string
	for i, p := range g.Parts {
		if i == maxUsers {
			names = append(names, fmt.Sprintf("and %d others", len(g.Parts)-i))
			break
		}
		names = append(names, p.User)
	}
	return clean(strings.Join(names, " "))
}

// clean returns a text in one line, of which all characters print, with a bound.
func clean(text string) string {
	text = explain.Clean(strings.Join(strings.Fields(text[:min(len(text), 4*maxText)]), " "))
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
