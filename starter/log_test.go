package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnconfigured: a starter that cannot read its configuration says so where an admin looks:
// the startd's log has only its exit code.
func TestUnconfigured(t *testing.T) {
	dir := t.TempDir()
	env := []string{"_CONDOR_LOG=" + dir}
	for suffix, inv := range map[string]invocation{
		"slot1": {logSuffix: "slot1"}, "slot1_2": {logSuffix: "slot1_2"}, "testing": {advertise: true}, "keep": {errand: errandKeep},
	} {
		if err := noteUnconfigured(inv, env, errors.New("condor_config_val gave no answer")); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "StarterLog."+suffix))
		if err != nil || !strings.Contains(string(text), "condor_config_val gave no answer") {
			t.Errorf("%s: %q, %v", suffix, text, err)
		}
	}
	for _, suffix := range []string{"", "../x", "a/b"} {
		if err := noteUnconfigured(invocation{logSuffix: suffix}, env, errors.New("x")); err == nil {
			t.Errorf("the suffix %q names a log", suffix)
		}
	}
	if err := noteUnconfigured(invocation{logSuffix: "slot1"}, []string{"_CONDOR_LOG=" + dir + "/none"}, errors.New("x")); err == nil {
		t.Error("a directory that is not there has a log")
	}
}
