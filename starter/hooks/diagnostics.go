package hooks

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"podstarter/condor/shadow"
	"podstarter/starter/hostprog"
)

const (
	// diagnosticTime is how long a diagnostic may take (starter_guidance.cpp).
	diagnosticTime = 20 * time.Second
	// maxDiagnostic bounds what is sent of a diagnostic's output, in bytes: its end,
	// which for a log tells most.
	maxDiagnostic = 256 << 10
)

// Diagnose runs a diagnostic of the site that the shadow asked for, and sends what it wrote
// (starter_guidance.cpp:run_diagnostic_reply_and_request_additional_guidance). Only an end
// of ctx is an error.
func (o Options) Diagnose(ctx context.Context, name string) error {
	event := shadow.Event(shadow.EventDiagnosticResult)
	event.SetString("Diagnostic", name)
	end, result, err := o.runDiagnostic(ctx, name)
	if err != nil {
		return err
	}
	if result == diagnosticUnknown {
		o.Log.Info(fmt.Sprintf("... diagnostic '%.64s' not registered in param table (STARTER_DIAGNOSTIC_%.64s).", name, name))
	}
	o.Log.Info("Diagnostic "+strconv.Quote(name)+" for the shadow", "result", result)
	event.SetString("Result", result)
	if result == diagnosticDone {
		event.SetInt("ExitStatus", int64(end.Status))
		event.SetString("Contents", base64.StdEncoding.EncodeToString(end.Stdout[max(0, len(end.Stdout)-maxDiagnostic):]))
	}
	if _, err := o.Shadow.EventNotification(context.WithoutCancel(ctx), event); err != nil {
		o.Log.Warn("Failed to send what a diagnostic found to the shadow", "error", err)
	}
	return nil
}

// What the shadow is told of a diagnostic.
const (
	diagnosticDone    = "Completed"
	diagnosticLate    = "Error - Timed Out"
	diagnosticUnknown = "Error - Unregistered"
	diagnosticMissing = "Error - specified path does not exist"
	diagnosticFailed  = "Error - failed to run"
)

func (o Options) runDiagnostic(ctx context.Context, name string) (hostprog.Outcome, string, error) {
	path, ok := "", plainName(name)
	if ok {
		path, ok = o.Settings.Config.Lookup("STARTER_DIAGNOSTIC_" + name)
	}
	if !ok {
		return hostprog.Outcome{}, diagnosticUnknown, nil
	}
	if _, err := os.Stat(path); err != nil || !filepath.IsAbs(path) {
		return hostprog.Outcome{}, diagnosticMissing, nil
	}
	env := append([]string(nil), o.Programs.Environ...)
	if bin, ok := o.Settings.Config.Lookup("BIN"); ok {
		env = append(env, "_CONDOR_BIN="+bin)
	}
	env = append(env, "_CONDOR_STARTER_PID="+strconv.Itoa(os.Getpid()))
	p := hostprog.Program{Path: path, Env: env, Dir: o.Job.Sandbox.Scratch(), As: o.Programs.User(), Limit: diagnosticTime}
	if !o.Settings.SeparateUsers() {
		// It is there to read the pilot's logs, so it cannot be confined. It meets
		// nothing of the job.
		p.Dir = "/"
	}
	end, err := p.Run(ctx, true)
	switch {
	case errors.Is(err, hostprog.ErrNotRun):
		o.Log.Warn("A diagnostic cannot be run", "error", err)
		return end, diagnosticFailed, nil
	case err != nil:
		return end, "", err
	case end.Late:
		return end, diagnosticLate, nil
	}
	return end, diagnosticDone, nil
}

// plainName says whether a name from the shadow may be part of a knob's name.
func plainName(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
