package chaos

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// at is a moment in the story of good, in milliseconds.
func at(ms int) time.Time {
	return time.Date(2026, 10, 16, 12, 0, 0, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond)
}

// good is a run without a fault: job 7.0 loses a starter, 7.1 a wrapper and 7.2 a
// payload; all end right.
func good() Evidence {
	e := Evidence{History: map[string]Final{}, Accounts: map[string]Account{}, Specs: map[string]string{}, Users: map[string]int{}}
	e.Patches = []Patch{{200, at(20), at(30)}, {200, at(25), at(35)}}
	for i := range 3 {
		job := Job{ID: fmt.Sprintf("7.%d", i), Image: "busybox", Input: fmt.Sprintf("in.%d", i), Digest: fmt.Sprintf("digest-%d", i)}
		e.Jobs = append(e.Jobs, job)
		e.History[job.ID] = Final{Status: 4, ExitCode: codeOf(job)}
		e.Accounts[job.ID] = Account{Ended: true, Account: facts.Account{
			Job: job.ID, Image: "busybox", Layer: fmt.Sprintf("/layers/%d", i), UID: 10001 + i, Digest: job.Digest, Files: []string{"probe", job.Input}}}
		event := func(number int, body ...string) {
			e.Events = append(e.Events, harness.Event{Number: number, Cluster: 7, Proc: i, Body: body})
		}
		event(harness.EventSubmit)
		event(harness.EventExecute)
		switch i {
		case 0:
			event(harness.EventDisconnected)
			event(harness.EventReconnectFailed)
		case 1:
			event(harness.EventShadowException)
		case 2:
			event(harness.EventEvicted)
		}
		event(harness.EventExecute)
		event(harness.EventTerminated, fmt.Sprintf("(1) Normal termination (return value %d)", codeOf(job)))

		container := fmt.Sprintf("payload-%d", i+1)
		first := Activation{Slot: "slot1_1", PID: 100 + i, Job: job.ID, Container: container, Spec: "busybox:first-" + container,
			Began: at(0), Leased: at(10), Started: at(100), Released: at(400), Ended: at(410), Exit: "status 0"}
		if i == 0 {
			first.Released, first.Ended, first.Exit = time.Time{}, time.Time{}, "signal 9"
		}
		second := first
		second.Spec = "busybox:second-" + container
		e.Specs[container], e.Users[container] = second.Spec, 10001+i
		e.Slots = append(e.Slots, Slot{Container: container, Nonce: "n" + container, PodNonce: "n" + container, Spec: second.Spec, Wrappers: 1})
		second.PID, second.Began, second.Leased, second.Started = 200+i, at(500), at(510), at(600)
		second.Released, second.Ended, second.Exit = at(900), at(910), "status 0"
		e.Activations = append(e.Activations, first, second)
		for run, from := range []int{110, 610} {
			e.Sightings = append(e.Sightings, Sighting{UID: 10001 + i, PID: 1000*run + i, Job: job.ID,
				Container: fmt.Sprintf("cg-%d-%d", run, i), First: at(from), Last: at(from + 200)})
		}
	}
	e.Kills = []Kill{{KindStarter, 100, at(300)}, {KindWrapper, 50, at(300)}, {KindPayload, 60, at(300)}}
	return e
}

// goodSpares is the same in a pod with a spare and a puller: when the first job's starter has
// been killed, its container is made new, and that job's second run gets it.
func goodSpares() Evidence {
	e := good()
	e.Spares, e.Pullers, e.Fetches = 1, true, 1
	e.Kills = append(e.Kills, Kill{KindPuller, 70, at(200)})
	e.Ahead = []Ahead{{PID: 101, Container: "payload-1", Spec: "busybox:run-ahead-1", Time: at(450)}}
	e.Activations[1].Fresh, e.Activations[1].Spec, e.Specs["payload-1"] = true, "", "busybox:run-ahead-1"
	e.Slots[0].Spec = e.Specs["payload-1"]
	e.Specs["payload-4"], e.Users["payload-4"] = "busybox:run-ahead-4", 10004
	e.Ahead = append(e.Ahead, Ahead{PID: 201, Container: "payload-4", Spec: "busybox:run-ahead-4", Time: at(700)})
	e.Slots = append(e.Slots, Slot{Container: "payload-4", Fresh: true, Nonce: "n4", PodNonce: "n4", Spec: "busybox:run-ahead-4", Wrappers: 1})
	return e
}

func TestCheckPassesAGoodRun(t *testing.T) {
	for _, e := range []Evidence{good(), goodSpares()} {
		for _, v := range Check(e) {
			t.Error(v)
		}
	}
}

// TestCheckFindsWithSpares is TestCheckFinds for what only a pod with spares and pullers has.
func TestCheckFindsWithSpares(t *testing.T) {
	for _, tt := range []struct {
		name       string
		change     func(*Evidence)
		kind, says string
	}{
		{"no puller was killed", func(e *Evidence) { e.Kills = e.Kills[:3] }, NoEvidence, "no puller"},
		{"nothing fetched", func(e *Evidence) { e.Fetches = 0 }, NoEvidence, "fetched"},
		{"nothing made ahead", func(e *Evidence) { e.Ahead = nil }, NoEvidence, "no container was made ahead"},
		{"made ahead for nobody", func(e *Evidence) { e.Activations[1].Fresh = false }, NoEvidence, "no job got"},
		{"made ahead under a job", func(e *Evidence) { e.Ahead[1].Container, e.Ahead[1].Time = "payload-2", at(200) }, Overlap, "payload-2"},
		{"image made ahead is gone", func(e *Evidence) { e.Specs["payload-4"] = "busybox:before" }, LostUpdate, "payload-4"},
		{"image that nobody made ahead", func(e *Evidence) { e.Specs["payload-4"] = "busybox:run-ahead-5" }, LostUpdate, "payload-4"},
		{"user of another container", func(e *Evidence) { e.Users["payload-1"] = 10009 }, Wrong, "10009"},
		{"fresh under a job", func(e *Evidence) { e.Noted = []string{"container payload-1: fresh"} }, Misnoted, "payload-1"},
		{"lease that nobody gave back", func(e *Evidence) { e.Slots[3].Leased = true }, Misnoted, "leased"},
		{"in use for ever", func(e *Evidence) { e.Slots[0].InUse = true }, Misnoted, "in use"},
		{"fresh and in use", func(e *Evidence) { e.Slots[3].InUse = true }, Misnoted, "as fresh"},
		{"nonce of another", func(e *Evidence) { e.Slots[3].PodNonce = "n5" }, Misnoted, "n5"},
		{"image of another", func(e *Evidence) { e.Slots[3].Spec = "debian" }, Misnoted, "debian"},
		{"process in a spare", func(e *Evidence) { e.Slots[3].Strange = 1 }, Leftover, "payload-4"},
		{"spare without a wrapper", func(e *Evidence) { e.Slots[3].Wrappers = 0 }, Leftover, "payload-4"},
		{"nothing noted", func(e *Evidence) { e.Slots = e.Slots[:3] }, NoEvidence, "payload-4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := goodSpares()
			tt.change(&e)
			found := Check(e)
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Kind == tt.kind && strings.Contains(v.Text, tt.says) }) {
				t.Errorf("want %s, saying %q; found %q", tt.kind, tt.says, found)
			}
		})
	}
}

// TestKilledWhileMakingAhead: the pod may have an image that a starter wrote just before it was killed.
func TestKilledWhileMakingAhead(t *testing.T) {
	e := goodSpares()
	e.Kills = append(e.Kills, Kill{KindStarter, 300, at(950)})
	e.Activations = append(e.Activations, Activation{Slot: "slot1_1", PID: 300, Began: at(930), Exit: "signal 9"})
	e.Specs["payload-4"] = "busybox:run-ahead-5"
	e.Slots[3].Nonce, e.Slots[3].Spec, e.Slots[3].Fresh = "", "", false
	for _, v := range Check(e) {
		t.Error(v)
	}
}

// The checker gets each kind of violation, and finds it. says is part of the text
// that it must return.
func TestCheckFinds(t *testing.T) {
	edit := func(e *Evidence, job string, change func(*Account)) {
		a := e.Accounts[job]
		a.Files = slices.Clone(a.Files)
		change(&a)
		e.Accounts[job] = a
	}
	drop := func(e *Evidence, number, proc int) {
		e.Events = slices.DeleteFunc(e.Events, func(v harness.Event) bool { return v.Number == number && v.Proc == proc })
	}
	event := func(number, proc int, body ...string) harness.Event {
		return harness.Event{Number: number, Cluster: 7, Proc: proc, Body: body}
	}
	tests := []struct {
		name       string
		change     func(*Evidence)
		kind, says string
	}{
		{"no log", func(e *Evidence) { e.Events = nil }, NoEvidence, "events"},
		{"no jobs", func(e *Evidence) { e.Jobs = nil }, NoEvidence, "jobs"},
		{"no history", func(e *Evidence) { e.History = nil }, NoEvidence, "history"},
		{"no outputs", func(e *Evidence) { e.Accounts = nil }, NoEvidence, "outputs"},
		{"no starter logs", func(e *Evidence) { e.Activations = nil }, NoEvidence, "activations"},
		{"nobody looked", func(e *Evidence) { e.Sightings = nil }, NoEvidence, "sightings"},
		{"no wrapper was killed", func(e *Evidence) { e.Kills = slices.Delete(e.Kills, 1, 2) }, NoEvidence, "no wrapper"},
		{"a job that no starter knows", func(e *Evidence) { e.Activations = slices.Delete(e.Activations, 2, 4) }, NoEvidence, "7.1 was started"},
		{"a job without a submit event", func(e *Evidence) { drop(e, harness.EventSubmit, 1) }, NoEvidence, "7.1 was submitted"},

		{"no end", func(e *Evidence) { drop(e, harness.EventTerminated, 1) }, Lost, "7.1 has not terminated"},
		{"held", func(e *Evidence) { e.Events = append(e.Events, event(harness.EventHeld, 1, "Code 6 Subcode 2")) }, Lost, "7.1"},
		{"removed", func(e *Evidence) { e.Events[3].Number = harness.EventAborted }, Lost, "7.0"},
		{"not in the history", func(e *Evidence) { delete(e.History, "7.1") }, Lost, "7.1 is not in the history"},
		{"no output", func(e *Evidence) { delete(e.Accounts, "7.1") }, Lost, "7.1 has no output"},

		{"two executions in the log", func(e *Evidence) { drop(e, harness.EventShadowException, 1) }, Twice, "7.1 began to execute"},
		{"two activations of a job", func(e *Evidence) { e.Activations[3].Leased = at(390) }, Twice, "7.1"},
		{"two users of a job", func(e *Evidence) { e.Sightings[3].First = at(300); e.Sightings[3].UID = 10009 }, Twice, "10009"},
		{"two containers of a job", func(e *Evidence) { e.Sightings[3].First = at(310) }, Twice, "cg-1-1"},
		{"more starts than the log knows", func(e *Evidence) {
			again := e.Activations[3]
			again.Began, again.Leased, again.Started, again.Released, again.Ended = at(1000), at(1010), at(1100), at(1200), at(1210)
			e.Activations = append(e.Activations, again)
		}, Twice, "3 times"},

		{"wrong exit code", func(e *Evidence) { e.Events[10].Body = []string{"(1) Normal termination (return value 125)"} }, Wrong, "exit code 125"},
		{"left by signal", func(e *Evidence) { e.Events[10].Body = []string{"(0) Abnormal termination (signal 9)"} }, Wrong, "signal 9"},
		{"wrong in the history", func(e *Evidence) { e.History["7.1"] = Final{Status: 4} }, Wrong, "history of job 7.1"},
		{"removed by the history", func(e *Evidence) { e.History["7.1"] = Final{Status: 3, ExitCode: codeOf(e.Jobs[1])} }, Wrong, "history of job 7.1"},
		{"output of another job", func(e *Evidence) { e.Accounts["7.1"] = e.Accounts["7.2"] }, Wrong, `of job "7.2"`},
		{"output of another image", func(e *Evidence) { edit(e, "7.1", func(a *Account) { a.Image = "debian" }) }, Wrong, "debian"},
		{"output cut short", func(e *Evidence) { edit(e, "7.1", func(a *Account) { a.Ended = false }) }, Wrong, "ended false"},
		{"input missing", func(e *Evidence) { edit(e, "7.1", func(a *Account) { a.Files = nil }) }, Wrong, "did not find in.1"},
		{"terminated twice", func(e *Evidence) { e.Events = append(e.Events, event(harness.EventTerminated, 1)) }, Wrong, "terminated 2 times"},
		{"executed after its end", func(e *Evidence) { e.Events = append(e.Events, event(harness.EventExecute, 1)) }, Wrong, "after its end"},
		{"terminated without executing", func(e *Evidence) { drop(e, harness.EventExecute, 1) }, Wrong, "without executing"},
		{"unknown job", func(e *Evidence) { e.Events = append(e.Events, event(harness.EventExecute, 9)) }, Wrong, "not submitted"},

		{"root file system of another", func(e *Evidence) { edit(e, "7.1", func(a *Account) { a.Layer = "/layers/0" }) }, Shared, "7.1"},
		{"root file system unknown", func(e *Evidence) { edit(e, "7.1", func(a *Account) { a.Layer = "" }) }, Shared, "7.1"},
		{"two jobs seen as one user", func(e *Evidence) { e.Sightings[2].UID = 10001 }, Shared, "user 10001"},
		{"two jobs seen in one look", func(e *Evidence) {
			for i := range 3 {
				e.Sightings[2*i].First, e.Sightings[2*i].Last = at(150), at(150)
			}
			e.Sightings[2].UID = 10001
		}, Shared, "user 10001"},
		{"two jobs seen in one container", func(e *Evidence) { e.Sightings[3].Container = "cg-0-0" }, Shared, "cg-0-0"},

		{"leases overlap", func(e *Evidence) { e.Activations[2].Container = "payload-1" }, Overlap, "payload-1"},
		{"a lease before the killed starter's end", func(e *Evidence) {
			e.Activations[3].Container, e.Activations[3].Leased = "payload-1", at(250)
		}, Overlap, "starter 100"},
		{"started without a lease", func(e *Evidence) { e.Activations[3].Leased, e.Activations[3].Released = time.Time{}, time.Time{} }, Overlap, "starter 201"},

		{"an image from the past", func(e *Evidence) { e.Specs["payload-2"] = "busybox:first-payload-2" }, LostUpdate, "payload-2"},
		{"an image from the past after a kill", func(e *Evidence) {
			e.Activations[3].Exit, e.Specs["payload-2"] = "signal 9", "debian"
		}, LostUpdate, "debian"},
		{"nothing bound", func(e *Evidence) { e.Specs["payload-4"] = "busybox" }, NoEvidence, "payload-4"},
		{"no specs", func(e *Evidence) { e.Specs = nil }, NoEvidence, "images"},
		{"no patches", func(e *Evidence) { e.Patches = nil }, NoEvidence, "patches"},
		{"patches refused", func(e *Evidence) { e.Patches[0].Code, e.Patches[1].Code = 409, 409 }, NoEvidence, "succeeded"},

		{"process left", func(e *Evidence) { e.Left = []string{"process 17"} }, Leftover, "process 17"},
		{"met a process", func(e *Evidence) { edit(e, "7.1", func(a *Account) { a.Others = []string{"17 probe"} }) }, Met, "17 probe"},
		{"met a file", func(e *Evidence) { edit(e, "7.1", func(a *Account) { a.Met = []string{"/tmp/x"} }) }, Met, "/tmp/x"},
		{"met a sandbox", func(e *Evidence) { edit(e, "7.1", func(a *Account) { a.Readable = []string{"dir_17"} }) }, Met, "dir_17"},
		{"met another's input", func(e *Evidence) { edit(e, "7.1", func(a *Account) { a.Files = append(a.Files, "in.2") }) }, Met, "in.2"},

		{"the startd saw no end", func(e *Evidence) { e.Activations[3].Exit = "" }, NoEnd, "starter 201"},
		{"no last line", func(e *Evidence) { e.Activations[3].Ended = time.Time{} }, NoEnd, "starter 201"},
		{"not given back", func(e *Evidence) { e.Activations[3].Released = time.Time{} }, NoEnd, "giving its container back"},
		{"died unkilled", func(e *Evidence) { e.Activations[3].Exit = "signal 11" }, Unexplained, "signal 11"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := good()
			tt.change(&e)
			found := Check(e)
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Kind == tt.kind && strings.Contains(v.Text, tt.says) }) {
				t.Errorf("want %s, saying %q; found %q", tt.kind, tt.says, found)
			}
		})
	}
}

func TestCheckIsNotSatisfiedByNothing(t *testing.T) {
	const kinds = 14 // of evidence
	found := Check(Evidence{})
	if len(found) != kinds {
		t.Errorf("found %d things missing, want %d: %q", len(found), kinds, found)
	}
}
