package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/sandbox"
)

// TestMissingInput: a job whose standard input did not come does not begin; what
// may be wrong with it besides is the launcher's to tell.
func TestMissingInput(t *testing.T) {
	box, err := sandbox.Create(t.Context(), sandbox.Options{Execute: t.TempDir(), PID: os.Getpid(), Nested: true, Payload: sandbox.Self(), Condor: sandbox.Self()})
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(box.Scratch(), "there")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := &activation{sandbox: box}
	for _, path := range []string{"", there, "/no/such/file/elsewhere", filepath.Join(there, "below")} {
		if err := a.missingInput(path, job.Command{}); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	gone := filepath.Join(box.Scratch(), "gone")
	failure := (*job.Failure)(nil)
	if err := a.missingInput(gone, job.Command{}); !errors.As(err, &failure) || failure.Code != shadow.HoldUnableToOpenInput || failure.Subcode != int(syscall.ENOENT) {
		t.Errorf("%v", err)
	}
}
