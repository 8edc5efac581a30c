package main

import (
	"bytes"
	"errors"
	"log/slog"
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
	if err := noteUnconfigured(invocation{local: &localInvocation{}}, env, errors.New("no answer for a schedd's job")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "StarterLog")); err != nil || !strings.Contains(string(text), "for a schedd's job") {
		t.Errorf("of a schedd's job: %q, %v", text, err)
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

// TestHeaded: lines of a schedd's jobs, which share one log, say whose they are.
func TestHeaded(t *testing.T) {
	for header, want := range map[string]string{"(12.0) ": "(12.0)  it began", "": "it began"} {
		var out bytes.Buffer
		log := slog.New(headed{slog.NewJSONHandler(&out, nil), header}).With("a", 1)
		log.Info("it began", "b", 2)
		for _, part := range []string{`"msg":"` + want + `"`, `"a":1`, `"b":2`} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("header %q: %s lacks %s", header, out.String(), part)
			}
		}
	}
}
