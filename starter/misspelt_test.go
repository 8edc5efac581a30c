package main

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"podstarter/condor/config"
	"podstarter/payload"
)

// TestMisspeltKnob: -check and the log of -classad name it and the one that was
// meant, whatever else is wrong.
func TestMisspeltKnob(t *testing.T) {
	for name, knobs := range map[string]map[string]string{
		"alone":              {"POD_STARTER_BACKEND": "local", "POD_STARTER_RESTE": "image"},
		"beside another bad": {"POD_STARTER_BACKEND": "cloud", "POD_STARTER_RESTE": "image"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.FromMap(knobs)
			_, found := audit(t.Context(), cfg)
			if !slices.ContainsFunc(found, func(f payload.Finding) bool {
				return f.Grade == payload.Warn && f.Fix == "POD_STARTER_RESTE" && strings.Contains(f.Detail, "did you mean POD_STARTER_RESET?")
			}) {
				t.Errorf("-check does not name it: %+v", found)
			}
			var log strings.Builder
			_, _ = preflight(t.Context(), cfg, &calls{}, slog.New(slog.NewTextHandler(&log, nil)))
			if !strings.Contains(log.String(), "POD_STARTER_RESTE is not a knob") {
				t.Errorf("the log of -classad does not name it:\n%s", log.String())
			}
		})
	}
}
