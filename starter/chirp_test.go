package main

import (
	"fmt"
	"log/slog"
	"testing"

	"podstarter/classads"
	"podstarter/condor/config"
)

// TestChirpWanted is the table of jic_shadow.cpp:JICShadow::initIOProxy.
func TestChirpWanted(t *testing.T) {
	for _, tt := range []struct {
		ad    string
		knobs map[string]string
		want  string
	}{
		{"", nil, "files false updates false delayed true: true"},
		{"WantIOProxy = true", nil, "files true updates true delayed true: true"},
		{"WantIOProxy = true\nWantRemoteUpdates = false\nWantDelayedUpdates = false", nil, "files true updates false delayed false: true"},
		{"WantRemoteUpdates = true", nil, "files false updates true delayed true: true"},
		{"WantDelayedUpdates = false", nil, "files false updates false delayed false: false"},
		{"WantIOProxy = true", map[string]string{"ENABLE_CHIRP": "false"}, "files false updates false delayed false: false"},
		{"WantIOProxy = true", map[string]string{"ENABLE_CHIRP_IO": "false"}, "files false updates false delayed true: true"},
		{"WantIOProxy = true", map[string]string{"ENABLE_CHIRP_UPDATES": "false"}, "files true updates false delayed true: true"},
		{"WantIOProxy = true", map[string]string{"ENABLE_CHIRP_DELAYED": "false"}, "files true updates true delayed false: true"},
		{"", map[string]string{"ENABLE_CHIRP": "what"}, "files false updates false delayed true: true"},
	} {
		ad, err := classads.ParseOld(tt.ad)
		if err != nil {
			t.Fatal(err)
		}
		a := &activation{ad: ad, log: slog.New(slog.DiscardHandler)}
		a.useKnobs(config.FromMap(tt.knobs))
		o, any := a.chirpWanted()
		if got := fmt.Sprintf("files %t updates %t delayed %t: %t", o.Files, o.Updates, o.Delayed, any); got != tt.want {
			t.Errorf("%q, %v: %s, want %s", tt.ad, tt.knobs, got, tt.want)
		}
	}
}
