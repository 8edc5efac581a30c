package explain

import (
	"errors"
	"io"
	"strings"
	"testing"

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
		Input: decision.Input{Pods: []decision.Pod{{ID: "site-plain-1"}}},
		Output: decision.Output{
			Groups: []decision.Outcome{
				{Idle: 4, Free: 1, New: 2, Waiting: []decision.Reason{{Jobs: 1, Why: "the limit of 2 pods is reached"}}},
				{Idle: 2, Waiting: []decision.Reason{{Jobs: 2, Why: "no template has slots that match"}}},
			},
			Create:   []decision.Creation{{Shape: 0, Count: 2, User: hostile}},
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
aaaa: 1 jobs wait: the limit of 2 pods is reached
bbbb: 2 jobs wait: no template has slots that match
make 2 of plain/one for ` + harmless + `
withdraw site-plain-1: no idle job has needed it for 3m0s
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
plain/one: matches; a job takes 1 CPUs, 10 MiB memory, 5 KiB disk
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
