package hooks_test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/condor/shadow"
	"podstarter/starter/hostprog"
	"podstarter/starter/hostprog/hostprogtest"
	"podstarter/starter/settings"
)

// TestDiagnose: the shadow hears what a diagnostic of the site wrote, or in stock's words
// why there is nothing.
func TestDiagnose(t *testing.T) {
	plain := filepath.Join(filepath.Dir(hostprogtest.Script(t, "")), "plain")
	must(t, os.WriteFile(plain, []byte("no program"), 0o755))
	look := hostprogtest.Script(t, `echo "$OF_THE_SITE $_CONDOR_BIN $_CONDOR_STARTER_PID"; pwd; echo odd >&2; exit 3`)
	knobs := map[string]string{
		"BIN": "/condor/bin", "STARTER_DIAGNOSTIC_look": look, "STARTER_DIAGNOSTIC_gone": "/no/such/program",
		"STARTER_DIAGNOSTIC_relative": "diagnostics_test.go", "STARTER_DIAGNOSTIC_plain": plain,
		"STARTER_DIAGNOSTIC_a b": look, "STARTER_DIAGNOSTIC_" + strings.Repeat("a", 65): look,
		"STARTER_DIAGNOSTIC_much": hostprogtest.Script(t, `head -c 300000 /dev/zero | tr '\0' a; echo the end`),
	}
	for name, want := range map[string]string{
		"look": "Completed", "much": "Completed", "unknown": "Error - Unregistered", "": "Error - Unregistered", "a b": "Error - Unregistered",
		strings.Repeat("a", 65): "Error - Unregistered", "gone": "Error - specified path does not exist",
		"relative": "Error - specified path does not exist", "plain": "Error - failed to run",
	} {
		t.Run(name, func(t *testing.T) {
			o, heard := site(t, knobs, "")
			must(t, o.Diagnose(t.Context(), name))
			if len(heard.events) != 1 {
				t.Fatalf("%d events", len(heard.events))
			}
			event := heard.events[0]
			if event.StringOr("Result", "") != want || event.StringOr("Diagnostic", "?") != name || event.StringOr("EventType", "") != shadow.EventDiagnosticResult {
				t.Errorf("the shadow hears %s, want %q", event.FormatOld(), want)
			}
			contents, err := base64.StdEncoding.DecodeString(event.StringOr("Contents", ""))
			must(t, err)
			switch {
			case name == "look":
				lines := strings.Split(string(contents), "\n")
				if !strings.HasPrefix(lines[0], "yes /condor/bin ") || lines[1] != o.Job.Sandbox.Scratch() || lines[2] != "odd" || event.IntOr("ExitStatus", 0) != 3<<8 {
					t.Errorf("%q, %s", contents, event.FormatOld())
				}
			case name == "much":
				if len(contents) != 256<<10 || !strings.HasSuffix(string(contents), "athe end\n") {
					t.Errorf("%d bytes, to %q", len(contents), contents[max(0, len(contents)-20):])
				}
			case len(contents) > 0 || event.Has("ExitStatus"):
				t.Errorf("%q, %s", contents, event.FormatOld())
			}
		})
	}
}

// TestDiagnoseEnds: an order ends a diagnostic, and a shadow that does not hear of it is
// no trouble.
func TestDiagnoseEnds(t *testing.T) {
	o, heard := site(t, map[string]string{"STARTER_DIAGNOSTIC_long": hostprogtest.Script(t, "exec sleep 3600")}, "")
	why := errors.New("ended by order")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := o.Diagnose(ctx, "long"); !errors.Is(err, why) || len(heard.events) != 0 {
		t.Errorf("%v, %v", err, heard.events)
	}
	heard.err = shadow.ErrLost
	must(t, o.Diagnose(t.Context(), "unknown"))
}

// TestDiagnoseWithoutRoot: a diagnostic may read what the pilot may. So it is told of
// nothing in the sandbox.
func TestDiagnoseWithoutRoot(t *testing.T) {
	if !hostprogtest.AsPilot(t) {
		return
	}
	o, heard := site(t, map[string]string{"STARTER_DIAGNOSTIC_look": hostprogtest.Script(t, "pwd; env")}, "")
	o.Settings.Backend = settings.BackendPod
	o.Programs.Host = hostprog.New(hostprog.Options{})
	must(t, o.Diagnose(t.Context(), "look"))
	said, err := base64.StdEncoding.DecodeString(heard.events[0].StringOr("Contents", ""))
	if err != nil || !strings.HasPrefix(string(said), "/\n") || strings.Contains(string(said), o.Job.Sandbox.Scratch()) {
		t.Errorf("it says %q, %v", said, err)
	}
}
