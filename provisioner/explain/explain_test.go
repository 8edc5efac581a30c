package explain

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/match"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/round"
)

// hostile is a name that would clear the terminal, by both forms of the sequence,
// end its line and turn the rest around.
const hostile = "eve\x1b[2J\u009b2J\r\n\t\u202e\xff@x"

const harmless = "eve?[2J?2J????\ufffd@x"

func report() round.Report {
	return round.Report{
		Groups: []demand.Group{
			{ID: "aaaa", Parts: []demand.Part{{User: "alice@x", Idle: 3, Jobs: "ap: 1.0 ... 1.2"}, {User: hostile, Idle: 1, Jobs: hostile}}},
			{ID: "bbbb", Parts: []demand.Part{{User: "bob@x", Idle: 2}}},
		},
		Shapes: []string{"plain/one", "gpu/one"},
		Matches: [][]match.Result{
			{{Matches: true, Request: resources.Amount{CPUs: 1, Memory: 10, Disk: 5}}, {Why: "the job's Requirements do not hold for the slot"}},
			{{Why: "no"}, {Why: "no"}},
		},
		Smaller: []round.Smaller{{Shape: 1, Says: resources.Amount{CPUs: 1, Memory: 4096, GPUs: 1}, Offers: resources.Amount{CPUs: 1, Memory: 4000, GPUs: 1}}},
		Input:   decision.Input{Pods: []decision.Pod{{ID: "site-plain-1"}}, Policy: decision.Policy{Settle: 3 * time.Minute}},
		Silent: []round.Silent{
			{Unit: "site-plain-2", Began: time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC), Ends: true},
			{Unit: "site-plain-3", Began: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC), Missed: time.Hour},
		},
		Output: decision.Output{
			Groups: []decision.Outcome{
				{Idle: 4, Free: 1, New: 2, Waiting: []decision.Reason{{Jobs: 1, Why: "the limit of 2 pods is reached"}}},
				{Idle: 2, Waiting: []decision.Reason{{Jobs: 2, Why: "no template has slots that match"}}},
			},
			Create:   []decision.Creation{{Shape: 0, Count: 2, User: hostile}},
			Memory:   decision.Memory{Surplus: map[string]time.Time{"site-plain-9": {}, "site-plain-8": {}}},
			Withdraw: []decision.Withdrawal{{Pod: 0, Why: "no idle job has needed it for 3m0s"}},
		},
	}
}

func TestRound(t *testing.T) {
	var out strings.Builder
	if err := Round(&out, report()); err != nil {
		t.Fatal(err)
	}
	want := `GROUP  IDLE  FREE  SOON  COMING  NEW  WAITING  USERS
aaaa   4     1     0     0       2    1        alice@x ` + harmless + `
bbbb   2     0     0     0       0    2        bob@x
the slots of gpu/one have 1 CPUs, 4000 MiB memory, 0 KiB disk, 1 GPUs, and the template says 1 CPUs, 4096 MiB memory, 0 KiB disk, 1 GPUs
aaaa: 1 jobs wait: the limit of 2 pods is reached
bbbb: 2 jobs wait: no template has slots that match
make 2 of plain/one for ` + harmless + `
withdraw site-plain-1: no idle job has needed it for 3m0s
withdraw site-plain-8 once no idle job has needed it for 3m0s
withdraw site-plain-9 once no idle job has needed it for 3m0s
end site-plain-2: it has run since 2026-11-02T08:00:00Z and has never reported to the collector
end site-plain-3 once the collector has not known it for 1h0m0s: it has run since 2026-11-02T09:00:00Z; a provisioner that did not follow it keeps it unless it is certain that no job has begun there
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestGroup(t *testing.T) {
	var out strings.Builder
	found, err := Group(&out, report(), "aaaa")
	if err != nil || !found {
		t.Fatal(found, err)
	}
	want := `3 idle jobs of alice@x (ap: 1.0 ... 1.2)
1 idle jobs of ` + harmless + ` (` + harmless + `)
plain/one: matches; a job requests 1 CPUs, 10 MiB memory, 5 KiB disk
gpu/one: the job's Requirements do not hold for the slot
1 jobs get no pod: the limit of 2 pods is reached
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for name, rep := range map[string]round.Report{"another group": report(), "a round that could not decide": {Groups: report().Groups}} {
		id := "cccc"
		if len(rep.Output.Groups) == 0 {
			id = "aaaa"
		}
		if found, err := Group(&out, rep, id); found || err != nil {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

// full is a disk without room.
type full struct{ room int }

var errFull = errors.New("no room")

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestOutputThatFails(t *testing.T) {
	for name, write := range map[string]func(w io.Writer) error{
		"round": func(w io.Writer) error { return Round(w, report()) },
		"job": func(w io.Writer) error {
			return Job(w, report(), &demand.Job{Group: "aaaa"}, "", []match.Explanation{{Slot: "x"}})
		},
		"group": func(w io.Writer) error { _, err := Group(w, report(), "aaaa"); return err },
	} {
		var all strings.Builder
		if err := write(&all); err != nil {
			t.Fatal(err)
		}
		for room := range all.Len() {
			if err := write(&full{room: room}); !errors.Is(err, errFull) {
				t.Errorf("%s: room for %d of %d bytes: %v", name, room, all.Len(), err)
			}
		}
	}
}

// A job is explained in words that need no knowledge of the program, and nothing of
// what others wrote reaches the terminal.
func TestJob(t *testing.T) {
	rep := report()
	rep.Input = decision.Input{
		Pods:      []decision.Pod{{Phase: decision.Reported}, {Phase: decision.Pending}},
		Groups:    []decision.Group{{Runtime: 90 * time.Second}},
		Limits:    decision.Limits{Coming: 20},
		Templates: []decision.Template{{Name: "plain", AllowanceWhy: "until a pod has reported, 3 are tried"}, {Name: "gpu"}},
		Shapes:    []decision.Shape{{Template: 0}, {Template: 1, Closed: "a quota"}},
		Fits:      [][]decision.Fit{{{Shape: 0, Bounded: true, Most: 2, Why: "until a job has taken one"}}, nil},
	}
	job := &demand.Job{ID: demand.JobID{Schedd: hostile, Cluster: 12, Proc: 3}, Group: "aaaa", User: hostile}
	matches := []match.Explanation{
		{Slot: "plain/one", Result: rep.Matches[0][0]},
		{
			Slot: "gpu/one", Result: match.Result{Why: "it is so"},
			Job:    []match.Clause{{Text: "TARGET.Memory >= RequestMemory", Value: "false", Uses: []string{"TARGET.Memory = 1", "RequestMemory = 2"}}, {Text: hostile, Value: "undefined"}},
			Theirs: []match.Clause{{Text: "TARGET.X", Value: "undefined", Uses: []string{"TARGET.X = undefined"}}},
		},
	}
	var out strings.Builder
	if err := Job(&out, rep, job, "it is held", matches); err != nil {
		t.Fatal(err)
	}
	want := `The job 12.3 of the schedd ` + harmless + `, of ` + harmless + `.
No pod is made for it: it is held.
Its group is aaaa: 4 idle jobs that match the same slots, of 2 users.
Each of them is expected to run for 1m30s.

plain/one matches; a job requests 1 CPUs, 10 MiB memory, 5 KiB disk.
  At most 2 pods are made now: until a job has taken one.
  Of plain: until a pod has reported, 3 are tried.

gpu/one does not match.
  These parts of the job's Requirements do not hold:
    TARGET.Memory >= RequestMemory
      is false, with TARGET.Memory = 1, RequestMemory = 2
    ` + harmless + `
      is undefined
  These parts of the slot's Requirements (START and what it can give) do not hold:
    TARGET.X
      is undefined, with TARGET.X = undefined
  No pod of this shape is made: a quota.

Of the 4 jobs of the group:
  1 have free room in a pod that runs
  2 get room of a pod that is made now
  1 get nothing: the limit of 2 pods is reached

Pods: 2, without a limit. Of these have not reported: 1 of at most 20.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	out.Reset()
	job.Group = "cccc"
	matches = []match.Explanation{{Slot: "plain/one", Result: match.Result{Why: "not evaluated yet"}}}
	if err := Job(&out, round.Report{}, job, "", matches); err != nil || !strings.Contains(out.String(), "Its group is cccc, of which") || !strings.Contains(out.String(), "  Not evaluated yet.\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// Why a slot refuses a job has the job's own words, such as the name of its image.
func TestHostileReasons(t *testing.T) {
	rep := report()
	rep.Matches[0][1].Why = hostile
	rep.Output.Groups[0].Waiting[0].Why = hostile
	rep.Output.Withdraw[0].Why = hostile
	for name, write := range map[string]func(w io.Writer) error{
		"a round": func(w io.Writer) error { return Round(w, rep) },
		"a group": func(w io.Writer) error {
			_, err := Group(w, rep, "aaaa")
			return err
		},
	} {
		var out strings.Builder
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.ContainsAny(text, "\x1b\u009b\r\u202e") || strings.Count(text, harmless) != 4 {
			t.Errorf("%s: %q", name, text)
		}
	}
}
