//go:build pool

package daemonfaults

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/integration/harness"
)

// noted is what the starter logs when it gives the shadow time.
const noted = "Waiting until the shadow has noted the end of its file transfer"

// endless is a plugin that runs until it is killed, and again at its second try:
// plugins that failed during the binding of an image get one.
const endless = `#!/bin/sh
[ "$1" = -classad ] && { echo 'MultipleFileSupport = true'; echo 'PluginType = "FileTransfer"'; echo 'SupportedMethods = "endless"'; exit; }
[ -e .begun ] && kill -9 $$
: >.begun
exec sleep 86399
`

// ends makes the main process of a job end, when it runs.
func ends(t *testing.T, job harness.Job) (end func()) {
	main := running(t, job)
	return func() { kill(t, main, unix.SIGTERM) }
}

// pluginEnds makes the job's plugin end, in the middle of the transfer of input.
func pluginEnds(t *testing.T, _ harness.Job) (end func()) {
	some, err := harness.WaitSome(soon(t), 1, func(p harness.Process) bool { return slices.Contains(p.Args, "86399") })
	if err != nil {
		t.Fatal(err)
	}
	return func() { kill(t, some[0], unix.SIGKILL) }
}

// TestShadowHearsLate lets a shadow hear of the end of its half of a transfer only
// when the starter has done all that it does by itself. The event log and the job's
// ad still have what the shadow knows about the transfer.
func TestShadowHearsLate(t *testing.T) {
	for name, tt := range map[string]struct {
		commands []string
		files    []harness.File
		ready    func(t *testing.T, job harness.Job) (end func()) // waits until the job is just before the end of the transfer
		way      string
		exits    bool // the job ends, and is not held
	}{
		"output": {ready: ends, way: "Out", files: []harness.File{{Name: "dir/keep"}},
			commands: []string{"transfer_output_files = caught", `transfer_output_remaps = "caught=dir/"`}},
		"output that arrives": {ready: ends, way: "Out", exits: true},
		"checkpoint":          {ready: ends, way: "Out", commands: []string{"checkpoint_exit_code = 7", "transfer_checkpoint_files = never-written"}},
		"input": {ready: pluginEnds, way: "In", files: []harness.File{{Name: "endless.sh", Mode: 0o755, Content: []byte(endless)}},
			commands: []string{"transfer_plugins = endless=endless.sh", "transfer_input_files = endless://one"}},
	} {
		t.Run(name, func(t *testing.T) {
			job := submitWith(t, harness.Ours, "late-"+strings.ReplaceAll(name, " ", "-"), lasting, tt.files, tt.commands...)
			end := tt.ready(t, job)
			starter := starterOf(t, job)
			hear, err := harness.Deafen(shadowOf(t, job))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = hear() })
			end()
			if !waits(t, job, starter) {
				t.Error("the starter did not wait for the shadow")
			}
			if err := hear(); err != nil {
				t.Fatal(err)
			}
			kind, said := harness.EventRemoteError, "its failure"
			if tt.exits {
				kind, said = harness.EventTerminated, "the job's end"
			}
			event(t, job, kind, 1)
			if !tt.exits {
				event(t, job, harness.EventHeld, 1)
				if err := job.Tool(soon(t), "condor_rm"); err != nil {
					t.Fatal(err)
				}
			}
			ad, err := job.History(soon(t))
			if err != nil {
				t.Fatal(err)
			}
			events, err := job.Events()
			if err != nil {
				t.Fatal(err)
			}
			headline := "Finished transferring " + strings.ToLower(tt.way) + "put files"
			finished := slices.IndexFunc(events, func(e harness.Event) bool { return strings.HasSuffix(e.Headline, headline) })
			if finished < 0 || finished > slices.IndexFunc(events, func(e harness.Event) bool { return e.Number == kind }) {
				t.Errorf("the event log lacks the end of the transfer, followed by %s: %s", said, harness.Headlines(events))
			}
			knows(t, ad, tt.way, tt.exits)
		})
	}
}

// waits reports whether a job's starter waits for its shadow; if not, it has ended.
func waits(t *testing.T, job harness.Job, starter harness.Process) (waited bool) {
	t.Helper()
	err := harness.Poll(soon(t), "the starter to wait, or to end", func() (bool, error) {
		left, err := harness.Processes(func(p harness.Process) bool { return p.PID == starter.PID })
		if err != nil {
			return false, err
		}
		runs, err := pool.RunsSince(job.Side, harness.LogMarks{})
		waited = slices.ContainsFunc(runs, func(run harness.SlotRun) bool { return run.PID == starter.Inner && run.Has(noted) })
		return waited || len(left) == 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return waited
}

// knows looks for what the job's ad says about a transfer.
func knows(t *testing.T, ad *classads.Ad, way string, went bool) {
	t.Helper()
	names := []string{"Transfer" + way + "Finished"}
	if went {
		names = append(names, "JobCurrentFinishTransfer"+way+"putDate")
	}
	for _, name := range names {
		if when, err := ad.GetInt(name); err != nil || when <= 0 {
			t.Errorf("the job's ad does not tell when its transfer ended: %s is %d, %v", name, when, err)
		}
	}
	stats, err := ad.GetAd("Transfer" + way + "putStats")
	if err != nil || stats.Len() == 0 {
		t.Errorf("the job's ad has no statistics of its transfer: %v", err)
	}
}
