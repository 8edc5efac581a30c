package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"podstarter/condor/config"
	"podstarter/k8sexec/pilotstop"
	"podstarter/starter/activation"
)

// TestPilotStopsInTime: while the hook runs, nobody tells the pilot to stop, and the pod's grace period passes. So starters are told also
// when the configuration does not come.
func TestPilotStopsInTime(t *testing.T) {
	slow := filepath.Join(t.TempDir(), "condor_config_val")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\nexec sleep 50\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, load := range map[string]func(context.Context) (*config.Config, error){
		"slow":   func(ctx context.Context) (*config.Config, error) { return config.Load(ctx, config.Options{Tool: slow}) },
		"broken": func(context.Context) (*config.Config, error) { return nil, errors.New("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			watch, err := pilotstop.NewWatch(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Close()
			began := time.Now()
			var out bytes.Buffer
			if code := pilotStops(t.Context(), &out, load, 100*time.Millisecond, dir); code != activation.ExitNormal || !watch.Told() {
				t.Errorf("exit code %d, told %v: %s", code, watch.Told(), &out)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
