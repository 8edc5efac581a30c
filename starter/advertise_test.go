package main

import (
	"log/slog"
	"strings"
	"testing"

	"podstarter/condor/config"
	"podstarter/starter/activation"
)

// TestAdvertiseMistakes: a misconfigured execution point tells the startd that it takes no jobs,
// and why.
func TestAdvertiseMistakes(t *testing.T) {
	cfg := config.FromMap(map[string]string{"POD_STARTER_BACKEND": "cloud"})
	var out strings.Builder
	if code := advertise(t.Context(), &out, cfg, slog.New(slog.DiscardHandler)); code != activation.ExitNormal {
		t.Errorf("exit code %d", code)
	}
	for _, line := range []string{"HasPodStarter = false\n", `PodStarterOfflineReason = "POD_STARTER_BACKEND: `} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, &out)
		}
	}
	if strings.Contains(out.String(), "HasFileTransfer") {
		t.Errorf("it promises something:\n%s", &out)
	}
}
