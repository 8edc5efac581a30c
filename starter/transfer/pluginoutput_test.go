package transfer

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/daemonlog"
	"podstarter/condor/plugin"
	"podstarter/starter/hostprog/hostprogtest"
	"podstarter/starter/settings"
)

// TestPluginOutput: what plugins write is logged where the knobs say.
func TestPluginOutput(t *testing.T) {
	tests := map[string]struct {
		knobs           map[string]string
		debug           string
		succeeds, fails bool
	}{
		"default":          {fails: true},
		"of all":           {knobs: map[string]string{"LOG_FILETRANSFER_PLUGIN_STDOUT_ON_SUCCESS": "D_ALWAYS"}, succeeds: true, fails: true},
		"in depth":         {knobs: map[string]string{"LOG_FILETRANSFER_PLUGIN_STDOUT_ON_SUCCESS": "D_FULLDEBUG"}, fails: true},
		"in depth, and on": {knobs: map[string]string{"LOG_FILETRANSFER_PLUGIN_STDOUT_ON_SUCCESS": "D_FULLDEBUG"}, debug: "D_FULLDEBUG", succeeds: true, fails: true},
		"a category":       {knobs: map[string]string{"LOG_FILETRANSFER_PLUGIN_STDOUT_ON_FAILURE": "D_NETWORK"}},
		"nowhere":          {knobs: map[string]string{"LOG_FILETRANSFER_PLUGIN_STDOUT_ON_FAILURE": "never"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "StarterLog")
			log, err := daemonlog.Open(daemonlog.Options{Path: path, Flags: daemonlog.ParseFlags(tt.debug)})
			if err != nil {
				t.Fatal(err)
			}
			say := pluginOutput(transferKnobs(t, tt.knobs), slog.New(log.Handler()))
			say(true, "good")
			say(false, "bad")
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(text), "good"); got != tt.succeeds {
				t.Errorf("of a success: %v, want %v", got, tt.succeeds)
			}
			if got := strings.Contains(string(text), "bad"); got != tt.fails {
				t.Errorf("of a failure: %v, want %v", got, tt.fails)
			}
		})
	}
}

// TestPluginReportIsALink: what a plugin of a job's puts in the place of its report is
// opened with no more rights than the job's user has, and not outside of the sandbox.
func TestPluginReportIsALink(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(`[ TransferSuccess = true; TransferUrl = "x://h/a"; TransferError = "loot" ]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]string{
		"link out":       "ln -s " + secret + " .x.sh.out",
		"link to itself": "ln -s .x.sh.out .x.sh.out",
		"pipe":           "mkfifo .x.sh.out",
		"directory":      "mkdir .x.sh.out",
		"device":         "ln -s /dev/zero .x.sh.out",
	} {
		t.Run(name, func(t *testing.T) {
			a := pluginActivation(t, hostprogtest.Sandbox(t, 4714))
			a.host = hostOf(settings.Settings{Backend: settings.BackendLocal})
			if err := a.sandbox.WriteFile("x.sh", []byte("#!/bin/sh\nrm .x.sh.out && "+put+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			set, err := plugin.Finder{Config: config.FromMap(nil), Log: a.log}.Find(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			job := classads.NewAd()
			job.SetString("TransferPlugins", "x=x.sh")
			set.AddJob(job, plugin.Allow)
			r := plugin.Runner{
				Set: set, Exec: a.programs().RunPlugin, Files: a.sandbox, Job: job, Scratch: a.sandbox.Scratch(), Log: a.log,
				Environ: []string{"PATH=/usr/bin:/bin"},
			}
			res, err := r.Run(t.Context(), set.Find("x://h/a"), plugin.Input, []plugin.File{{URL: "x://h/a", Path: filepath.Join(a.sandbox.Scratch(), "a")}}, "")
			if err != nil {
				t.Fatal(err)
			}
			if res.Failure == nil || len(res.Reports) != 0 || !strings.Contains(res.Failure.Text, "unable to open output file") {
				t.Errorf("reports %v, failure %v", res.Reports, res.Failure)
			}
		})
	}
}

func transferKnobs(t *testing.T, knobs map[string]string) settings.Transfer {
	t.Helper()
	set, err := settings.Read(config.FromMap(knobs))
	if err != nil {
		t.Fatal(err)
	}
	return set.Condor.Transfer
}
