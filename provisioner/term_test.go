package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// term is an election that is won once, for a term that ends.
type term struct {
	over  chan struct{}
	until time.Time
}

func (e term) Run(ctx context.Context, lead func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-e.over
		cancel()
	}()
	return lead(ctx)
}
func (term) Leader() (string, bool) { return "me", true }
func (e term) Until() time.Time     { return e.until }

// lead lets a provisioner of the mode offline-ads lead for a round, and returns what
// it has sent and logged.
func lead(t *testing.T, args []string, e term, w world) string {
	t.Helper()
	var words strings.Builder
	log := writer(func(p []byte) {
		words.Write(p)
		if strings.Contains(string(p), "A round is done") {
			close(e.over)
		}
	})
	if err := run(t.Context(), args, &strings.Builder{}, log, w); err != nil {
		t.Errorf("it ends, instead of standing by: %v", err)
	}
	return words.String()
}

// Who has lost the lease leaves the offline ads to the next leader, which may have
// begun.
func TestAdsOfALostTerm(t *testing.T) {
	for _, lost := range []bool{false, true} {
		args, m, dir := rooster(t)
		e := term{make(chan struct{}), time.Now().Add(time.Hour)}
		if lost {
			e.until = time.Now().Add(-time.Second)
		}
		lead(t, args, e, inMemory(m, e))
		text, err := os.ReadFile(filepath.Join(dir, "sent"))
		if err != nil && !lost {
			t.Fatal(err)
		}
		if back := strings.Contains(string(text), "INVALIDATE_STARTD_ADS"); back == lost {
			t.Errorf("lost %v: ads are taken back: %v\n%s", lost, back, text)
		}
	}
}

// A collector that is away as well does not end the program.
func TestTermEndsWithoutCollector(t *testing.T) {
	args, m, dir := rooster(t)
	e := term{make(chan struct{}), time.Now().Add(time.Hour)}
	if err := os.WriteFile(filepath.Join(dir, "condor_advertise"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if words := lead(t, args, e, inMemory(m, e)); !strings.Contains(words, "taking the offline ads back") {
		t.Errorf("nobody is told:\n%s", words)
	}
}
