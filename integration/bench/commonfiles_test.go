package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"podstarter/integration/harness"
)

// TestCommonRun: what is counted of an event log, in which the common files have a job of their own.
func TestCommonRun(t *testing.T) {
	const log = `000 (007.000.000) 2026-11-26 11:00:00 Job submitted from host: <127.0.0.1:1>
...
047 (007.-1000.000) 2026-11-26 11:00:02.000 Common files event: TransferStarted
	Started transferring common files
...
047 (007.-1000.000) 2026-11-26 11:00:05.500 Common files event: TransferFinished
	Finished transferring common files
...
005 (007.000.000) 2026-11-26 11:00:09.250 Job terminated.
	(1) Normal termination (return value 0)
	0  -  Run Bytes Sent By Job
	50  -  Run Bytes Received By Job
	0  -  Total Bytes Sent By Job
	50  -  Total Bytes Received By Job
...
`
	events, err := harness.ParseEvents(log)
	if err != nil {
		t.Fatal(err)
	}
	got := commonRun{common: true}
	if err := got.read(events, 1000); err != nil {
		t.Fatal(err)
	}
	want := commonRun{common: true, took: 7250 * time.Millisecond, sent: 1050}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(commonRun{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := (&commonRun{common: true}).read(nil, 1000); err == nil {
		t.Error("no common files, and no error")
	}
}
