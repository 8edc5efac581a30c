// Package tally adds up what the journal tells, for metrics: totals that only grow, with
// labels of few values, whatever jobs, images and registries say.
package tally

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"podstarter/payload"
	"podstarter/starter/journal"
)

// Totals are counts since the pod began. The zero value is a pod's beginning. They belong
// to one goroutine.
type Totals struct {
	Begun  int64                     `json:"begun"`
	Ended  map[journal.Outcome]int64 `json:"ended,omitempty"`
	Active float64                   `json:"active"` // seconds of activations that ended
	Ran    float64                   `json:"ran"`    // seconds in which their programs ran
	CPU    float64                   `json:"cpu"`    // seconds of CPU that those took

	Bindings map[payload.How]Times `json:"bindings,omitempty"`
	Fetches  Times                 `json:"fetches"` // waits for a puller

	Copies      Times `json:"copies"`      // of images that the kubelet does not pull
	CopiedBytes int64 `json:"copiedBytes"` // of their files

	// Failures are verdicts of the backend, by "PHASE|BLAME|REASON"; see [Phases].
	Failures map[string]int64 `json:"failures,omitempty"`
	// Codes are ends that are not the job's own, by "OUTCOME|CODE" with HTCondor's hold or
	// vacate code.
	Codes map[string]int64 `json:"codes,omitempty"`
	// Calls are answers of the API server, by "VERB|STATUS".
	Calls map[string]int64 `json:"calls,omitempty"`

	LinesLost int64 `json:"linesLost"` // of the log, since nobody read it
}

// The phases of a job in which a backend fails: before its program was started, and after.
const (
	Binding = "binding"
	Running = "running"
)

// Blames are the words for whom a verdict blames.
var Blames = []string{payload.User.String(), payload.Site.String(), payload.Pilot.String(), payload.Unknown.String()}

// most is how many sets of labels one map may have. One more is for the rest.
const most = 64

// Other stands for labels beyond the bounds.
const Other = "other"

// Add counts an event.
func (t *Totals) Add(e journal.Event) {
	for call, n := range e.Calls {
		verb, status, _ := strings.Cut(call, " ")
		count(&t.Calls, max(0, n), verb, status)
	}
	switch e.Kind {
	case journal.JobBegins:
		t.Begun++
	case journal.ImageBound:
		t.bound(e)
	case journal.JobEnds:
		t.ended(e)
	}
}

func (t *Totals) bound(e journal.Event) {
	how := payload.How(e.How)
	if !slices.Contains(payload.Hows, how) {
		return // of a backend without containers
	}
	if t.Bindings == nil {
		t.Bindings = make(map[payload.How]Times)
	}
	times := t.Bindings[how]
	times.add(e.Seconds)
	t.Bindings[how] = times
	if e.Fetched > 0 {
		t.Fetches.add(e.Fetched)
	}
	if e.Copied > 0 {
		t.Copies.add(e.Copied)
		t.CopiedBytes = min(t.CopiedBytes+max(0, min(e.CopiedBytes, 1<<62)), 1<<62)
	}
}

func (t *Totals) ended(e journal.Event) {
	outcome := e.Outcome
	if !slices.Contains(journal.Outcomes, outcome) {
		outcome = journal.Lost
	}
	if t.Ended == nil {
		t.Ended = make(map[journal.Outcome]int64)
	}
	t.Ended[outcome]++
	t.Active += max(0, e.Seconds)
	t.Ran += max(0, e.Ran)
	t.CPU += max(0, e.CPU)
	if e.Code != 0 {
		count(&t.Codes, 1, string(outcome), strconv.Itoa(e.Code))
	}
	if slices.Contains(Blames, e.Blame) {
		phase := Binding
		if e.Started {
			phase = Running
		}
		count(&t.Failures, 1, phase, e.Blame, word(e.Cause))
	}
}

// count adds n to the count with these labels. When there are too many, the last label is
// [Other].
func count(in *map[string]int64, n int64, labels ...string) {
	if *in == nil {
		*in = make(map[string]int64)
	}
	for i, l := range labels {
		labels[i] = word(l)
	}
	key := strings.Join(labels, "|")
	if _, ok := (*in)[key]; !ok && len(*in) >= most {
		labels[len(labels)-1] = Other
		if key = strings.Join(labels, "|"); len(*in) >= 2*most {
			return
		}
	}
	(*in)[key] += n
}

// word is a label: a word of letters and digits, or [Other].
func word(s string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
	}
	if s == "" || len(s) > 40 || strings.IndexFunc(s, odd) >= 0 {
		return Other
	}
	return s
}

// Labels are those of a key of Failures, Codes or Calls; there are n.
func Labels(key string, n int) ([]string, bool) {
	labels := strings.Split(key, "|")
	for _, l := range labels {
		if l != word(l) {
			return nil, false
		}
	}
	return labels, len(labels) == n
}

// Clone is a copy that does not change.
func (t Totals) Clone() Totals {
	t.Ended, t.Bindings = maps.Clone(t.Ended), maps.Clone(t.Bindings)
	t.Failures, t.Codes, t.Calls = maps.Clone(t.Failures), maps.Clone(t.Codes), maps.Clone(t.Calls)
	return t
}
