package main

import (
	"os"
	"path/filepath"
	"testing"

	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

func TestOwnUserNamespace(t *testing.T) {
	for text, want := range map[string]bool{
		"         0          0 4294967295\n": false,
		"         0  165536000      65536\n": true,
		"":                                   true, // no mapping at all
	} {
		path := filepath.Join(t.TempDir(), "uid_map")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ownUserNamespace(path); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if ownUserNamespace(filepath.Join(t.TempDir(), "none")) {
		t.Error("a kernel without user namespaces")
	}
}

// TestCrowdIsHeld: a job that was killed for its processes is held, unless it was to end
// anyway.
func TestCrowdIsHeld(t *testing.T) {
	for _, tt := range []struct {
		name    string
		run     payloadRun
		killed  string
		crowded bool
	}{
		{"by the wrapper", payloadRun{}, payload.KilledTasks, true},
		{"by the starter", payloadRun{crowd: true}, payload.KilledSweep, true},
		{"by the starter's own hand", payloadRun{crowd: true}, "", true},
		{"by an order", payloadRun{}, payload.KilledSweep, false},
		{"after an order", payloadRun{ordered: true}, payload.KilledTasks, false},
	} {
		a := &activation{payload: &tt.run, set: settings.Settings{MaxTasks: 5}}
		if got := a.crowded(payload.Exit{Killed: tt.killed}); got != tt.crowded {
			t.Errorf("%s: %v", tt.name, got)
		}
		if f := failure.Of(a.tooManyTasks()); f.Code != shadow.HoldJobOutOfResources || shadow.ShouldVacate(f.Code, f.Subcode) {
			t.Errorf("%s: %+v", tt.name, f)
		}
	}
}
