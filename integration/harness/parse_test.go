package harness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const eventLog = `000 (012.000.000) 2026-10-16 12:00:00 Job submitted from host: <127.0.0.1:9618?addrs=127.0.0.1-9618>
...
001 (012.000.000) 2026-10-16 12:00:01 Job executing on host: <127.0.0.1:9619>
	SlotName: slot1_1@ep
	Cpus = 1
...
012 (012.001.000) 2026-10-16 12:00:02 Job was held.
	Error from slot1_1@ep: Failed to execute '/no/such':
	(errno=2: 'No such file or directory')
	Code 6 Subcode 2
...
005 (012.000.000) 2026-10-16 12:00:03 Job terminated.
	(1) Normal termination (return value 7)
		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage
...
005 (012.002.000) 10/16 12:00:03 Job terminated.
	(0) Abnormal termination (signal 9)
	(0) No core file
...
009 (012.003.000) 2026-10-16 12:00:04.125Z Job was aborted.
	via condor_rm (by user someone)
...
047 (012.-1000.000) 2026-10-16 12:00:05 Common files event: TransferStarted
...
005 (012.004.000) 2026-10-16 12:00:05 Job termi`

func TestParseEvents(t *testing.T) {
	events, err := ParseEvents(eventLog)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 7 || events[6].Proc != -1000 {
		t.Fatalf("%d events, want the 7 complete ones: %s", len(events), Headlines(events))
	}
	if diff := cmp.Diff(Event{Number: EventExecute, Cluster: 12, Stamp: "2026-10-16 12:00:01",
		Headline: "Job executing on host: <127.0.0.1:9619>", Body: []string{"SlotName: slot1_1@ep", "Cpus = 1"}}, events[1]); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"held 6/2: Error from slot1_1@ep: Failed to execute '/no/such':\n(errno=2: 'No such file or directory')",
		"exit code 7", "signal 9", "removed",
	}
	var endings []string
	for _, e := range events {
		if ending, ok := EndingOf(e); ok {
			endings = append(endings, ending.String())
		}
	}
	if diff := cmp.Diff(want, endings); diff != "" {
		t.Error(diff)
	}
}

func TestParseEventsRefuses(t *testing.T) {
	for _, text := range []string{"...\n", "no event\n...\n", "001 (1.0) 2026-10-16 12:00:01 x\n...\n"} {
		if events, err := ParseEvents(text); err == nil {
			t.Errorf("%q was read as %v", text, events)
		}
	}
}

const starterLog = `10/16/26 11:59:59.000 half a line of an older run
10/16/26 12:00:00.100 ******************************************************
10/16/26 12:00:00.101 ** condor_starter (CONDOR_STARTER) STARTING UP
10/16/26 12:00:00.101 ** PID = 649
10/16/26 12:00:00.200 (pid:649) (D_ALWAYS) Starting a VANILLA universe job with ID: 12.0
10/16/26 12:00:00.300 (D_FULLDEBUG:2) Phase bind took 0.150s
10/16/26 12:00:00.300 (fd:3) (D_COMMAND|D_FULLDEBUG) Phase get ready took 0.002s
a second line of a message
10/16/26 12:00:01.151 **** condor_starter (condor_STARTER) pid 649 EXITING WITH STATUS 0
10/16/26 12:00:02 ** condor_starter (CONDOR_STARTER) STARTING UP
10/16/26 12:00:02 ** PID = 700
`

func TestParseStarterLog(t *testing.T) {
	runs, err := ParseStarterLog(starterLog)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 2 {
		t.Fatalf("%d runs, want 2", len(runs))
	}
	first, second := runs[0], runs[1]
	if first.PID != 649 || first.Job != "12.0" || first.Status != 0 || first.Ended.Sub(first.Began) != 1050*time.Millisecond {
		t.Errorf("first run: %+v", first)
	}
	if diff := cmp.Diff(map[string]time.Duration{"bind": 150 * time.Millisecond, "get ready": 2 * time.Millisecond}, first.Phases); diff != "" {
		t.Error(diff)
	}
	if !first.Has("took 0.002s\na second line") {
		t.Errorf("the second line of a message is lost:\n%s", first.Text())
	}
	if second.PID != 700 || second.Status != -1 || !second.Ended.IsZero() {
		t.Errorf("second run, which has not ended: %+v", second)
	}
	if got := RunsOf(runs, "12.0"); len(got) != 1 {
		t.Errorf("%d runs of job 12.0, want 1", len(got))
	}
}
