package changes

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/round"
)

// heard returns the messages of a log, with some of their values.
type heard struct {
	t    *testing.T
	text strings.Builder
	log  *Log
}

func listen(t *testing.T) *heard {
	h := &heard{t: t}
	h.log = New(slog.New(slog.NewJSONHandler(&h.text, nil)))
	return h
}

func (h *heard) round(rep round.Report) []string {
	h.t.Helper()
	h.text.Reset()
	h.log.Round(rep, []string{"plain"})
	var lines []string
	for line := range strings.Lines(h.text.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			h.t.Fatalf("%v: %s", err, line)
		}
		text := fmt.Sprint(m["msg"])
		for _, key := range []string{"pod", "template", "shape", "group", "users", "jobs", "cause", "reason", "source", "error"} {
			if v, ok := m[key]; ok {
				text += fmt.Sprintf(" %s=%v", key, v)
			}
		}
		lines = append(lines, text)
	}
	return lines
}

var at = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)

// report is a round that saw one group.
func report(minute int, waiting ...decision.Reason) round.Report {
	jobs := 0
	for _, r := range waiting {
		jobs += r.Jobs
	}
	return round.Report{
		At: at.Add(time.Duration(minute) * time.Minute), Shapes: []string{"plain/one"}, Backoff: []backoff.State{{}},
		Groups: []demand.Group{{ID: "g1", Parts: []demand.Part{{User: "alice@x", Idle: 9}}}},
		Output: decision.Output{Groups: []decision.Outcome{{Idle: 9, New: 9 - jobs, Waiting: waiting}}},
	}
}

func TestEachThingOnce(t *testing.T) {
	h := listen(t)
	limit := decision.Reason{Jobs: 4, Why: "the limit of 5 pods is reached", Cause: decision.PodLimit}
	down := errors.New("running condor_status:\n\tit is away")
	waits := backoff.State{Reason: backoff.Failed, Failures: 1, Until: at.Add(10 * time.Minute)}
	for _, c := range []struct {
		name string
		rep  round.Report
		want []string
	}{
		{"all get places", report(0), []string{"A round is done jobs=9"}},
		{"nothing is new", report(1), nil},
		{"some wait", report(2, limit), []string{
			"Jobs get no pod group=g1 users=alice@x jobs=4 cause=PodLimit reason=4: the limit of 5 pods is reached", "A round is done jobs=9",
		}},
		{"they still wait", report(3, limit), nil},
		{"fewer wait", report(4, decision.Reason{Jobs: 1, Why: limit.Why, Cause: limit.Cause}), []string{"A round is done jobs=9"}},
		{"none waits", report(5), []string{"Jobs get places group=g1 users=alice@x jobs=9", "A round is done jobs=9"}},
		{"they come and go", report(6, limit), []string{"A round is done jobs=9"}},
		{"an hour later", report(70, limit), []string{
			"Jobs get no pod group=g1 users=alice@x jobs=4 cause=PodLimit reason=4: the limit of 5 pods is reached", "A round is done jobs=9",
		}},
	} {
		if diff := cmp.Diff(c.want, h.round(c.rep)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}

	h = listen(t)
	broken := report(0)
	broken.Problems = []round.Problem{{Source: round.Collector, Err: down}}
	broken.Backoff = []backoff.State{waits}
	want := []string{
		"A round met an error source=collector error=running condor_status: it is away",
		"No pod of a template is made for a while template=plain reason=Failed", "A round is done jobs=9",
	}
	if diff := cmp.Diff(want, h.round(broken)); diff != "" {
		t.Errorf("an error: -want +got\n%s", diff)
	}
	broken.At = at.Add(time.Minute)
	if diff := cmp.Diff([]string(nil), h.round(broken)); diff != "" {
		t.Errorf("the same error: -want +got\n%s", diff)
	}
	well := report(11)
	well.Backoff = []backoff.State{waits}
	if diff := cmp.Diff([]string{"An error is over source=collector", "A pod of a template is tried again template=plain reason=Failed"}, h.round(well)); diff != "" {
		t.Errorf("the end of an error: -want +got\n%s", diff)
	}
	well.Backoff = []backoff.State{{LastReport: at}}
	if diff := cmp.Diff([]string{"A template works template=plain"}, h.round(well)); diff != "" {
		t.Errorf("a template that works: -want +got\n%s", diff)
	}
}

// That jobs take no pods of a template is said once, and when one is tried again.
func TestUntaken(t *testing.T) {
	h := listen(t)
	h.round(report(0))
	untaken := func(minute int) round.Report {
		rep := report(minute)
		rep.Untaken = []round.Untaken{{Left: 20, State: backoff.State{Reason: backoff.Untaken, Failures: 1, Until: at.Add(5 * time.Minute)}}}
		return rep
	}
	takes := func(minute int) round.Report {
		rep := report(minute)
		rep.Untaken = []round.Untaken{{}}
		return rep
	}
	for i, c := range []struct {
		rep  round.Report
		want []string
	}{
		{untaken(1), []string{"No pod of a template is made for a while template=plain reason=Untaken"}},
		{untaken(2), nil},
		{untaken(5), []string{"A pod of a template is tried again template=plain reason=Untaken"}},
		{takes(6), []string{"Jobs take the pods of a template again template=plain"}},
		{takes(7), nil},
	} {
		if diff := cmp.Diff(c.want, h.round(c.rep)); diff != "" {
			t.Errorf("round %d: -want +got\n%s", i, diff)
		}
	}
}

// What slots have is said when it is new, and when it is as the template says again.
func TestSizes(t *testing.T) {
	h := listen(t)
	h.round(report(0))
	less := func(minute int, memory int64) round.Report {
		rep := report(minute)
		rep.Smaller = []round.Smaller{{Says: resources.Amount{CPUs: 1, Memory: 4096}, Offers: resources.Amount{CPUs: 1, Memory: memory}}}
		return rep
	}
	const warning = "The slots of pods have less than their template says, and jobs count on no more than they have shape=plain/one"
	for i, c := range []struct {
		rep  round.Report
		want []string
	}{
		{less(1, 4000), []string{warning}},
		{less(2, 4000), nil},
		{less(3, 3000), []string{warning}},
		{report(4), []string{"The slots of pods are taken to have what their template says shape=plain/one"}},
		{report(5), nil},
	} {
		if diff := cmp.Diff(c.want, h.round(c.rep)); diff != "" {
			t.Errorf("round %d: -want +got\n%s", i, diff)
		}
	}
}

func TestActs(t *testing.T) {
	rep := report(0)
	rep.Output.Create = []decision.Creation{{Count: 2, User: "alice@x"}}
	rep.Output.Withdraw = []decision.Withdrawal{{Pod: 0, Why: "no idle job has needed it for 3m0s"}}
	rep.Input.Pods = []decision.Pod{{ID: "site-plain-0"}}
	rep.Made, rep.Withdrawn = []string{"site-plain-1"}, []string{"site-plain-0"}
	rep.Failed = []round.Failure{{Unit: "site-plain-2", Template: "plain", Reason: backoff.Failed, Detail: "exit code 1"}}
	want := []string{
		"Pods are needed shape=plain/one group=g1 users=alice@x",
		"A pod is made pod=site-plain-1",
		"A pod is withdrawn pod=site-plain-0 reason=no idle job has needed it for 3m0s",
		"A pod came to nothing pod=site-plain-2 template=plain reason=Failed",
		"A round is done jobs=9",
	}
	if diff := cmp.Diff(want, listen(t).round(rep)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Whatever users call themselves and however many groups there are, a round says a
// bounded number of lines of bounded length.
func TestBounds(t *testing.T) {
	h := listen(t)
	rep := report(0)
	rep.Groups, rep.Output.Groups = nil, nil
	user, why := strings.Repeat("\u202e\x1b[31m", 3000), strings.Repeat("x", 10_000)
	for i := range 20_000 {
		rep.Groups = append(rep.Groups, demand.Group{ID: fmt.Sprint(i), Parts: []demand.Part{{User: user, Idle: 1}}})
		rep.Output.Groups = append(rep.Output.Groups, decision.Outcome{Idle: 1, Waiting: []decision.Reason{{Jobs: 1, Why: why, Cause: decision.NoMatch}}})
	}
	lines := h.round(rep)
	if len(lines) != maxLines+2 {
		t.Errorf("there are %d lines", len(lines))
	}
	for _, l := range lines {
		if len(l) > 3*maxText || strings.ContainsAny(l, "\u202e\x1b") {
			t.Fatalf("a line of %d bytes: %.200q", len(l), l)
		}
	}
	if len(h.round(rep)) != 0 {
		t.Error("the same round is said again")
	}
}
