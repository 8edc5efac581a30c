package transfer

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/condor/config"
	"podstarter/condor/daemonlog"
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

func transferKnobs(t *testing.T, knobs map[string]string) settings.Transfer {
	t.Helper()
	set, err := settings.Read(config.FromMap(knobs))
	if err != nil {
		t.Fatal(err)
	}
	return set.Condor.Transfer
}
