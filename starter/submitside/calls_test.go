package submitside

import (
	"log/slog"
	"testing"

	"podstarter/condor/config"
	"podstarter/condor/startd"
)

// TestRelay: brokers pass on what two daemons say unless the site does not want it.
func TestRelay(t *testing.T) {
	for value, want := range map[string]bool{"": true, "true": true, "perhaps": true, "false": false} {
		knobs := map[string]string{}
		if value != "" {
			knobs["CCB_CLIENT_STREAMING"] = value
		}
		calls := NewCalls(&startd.Address{}, config.FromMap(knobs), slog.New(slog.DiscardHandler))
		if calls.Relay != want {
			t.Errorf("CCB_CLIENT_STREAMING = %q: %v, want %v", value, calls.Relay, want)
		}
	}
}
