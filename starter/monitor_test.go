package main

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStatusAds(t *testing.T) {
	s := status{Images: []string{"debian:stable", "docker.io/library/debian:stable"}}
	known := map[string]bool{}
	well := `PodStarterHealthy = true
PodStarterOfflineUntil = 0
PodStarterOfflineReason = ""
PodStarterImages = "debian:stable,docker.io/library/debian:stable"
- pod update:true
`
	if diff := cmp.Diff(well, s.ads(noon, known)); diff != "" {
		t.Errorf("well (-want +got):\n%s", diff)
	}
	s.Health = s.Health.fellSick(`no "permission"`, noon, usual).tired("2", "registry away", noon, usual)
	sick := `PodStarterHealthy = false
PodStarterOfflineUntil = 1795262460
PodStarterOfflineReason = "no \"permission\""
PodStarterImages = "debian:stable,docker.io/library/debian:stable"
- pod update:true
SlotId = 2
PodStarterRestUntil = 1795262410
PodStarterRestReason = "registry away"
- rest2 update:true
`
	if diff := cmp.Diff(sick, s.ads(noon, known)); diff != "" {
		t.Errorf("sick (-want +got):\n%s", diff)
	}
	// The slot's ad would keep what is not said any more.
	s.Health = health{}
	over := well + `SlotId = 2
PodStarterRestUntil = 0
PodStarterRestReason = ""
- rest2 update:true
`
	if diff := cmp.Diff(over, s.ads(noon, known)); diff != "" {
		t.Errorf("well again (-want +got):\n%s", diff)
	}
}

func TestStatusNext(t *testing.T) {
	s := status{Health: health{}.fellSick("x", noon, usual).tired("1", "x", noon.Add(time.Millisecond), usual)}
	for _, want := range []time.Duration{11 * time.Second, time.Minute} {
		next := s.next(noon)
		if next.Sub(noon) != want {
			t.Fatalf("the ads change after %s, want %s", next.Sub(noon), want)
		}
		before, after := s.ads(next.Add(-time.Millisecond), map[string]bool{}), s.ads(next, map[string]bool{})
		if want == time.Minute && before == after {
			t.Error("and then they do not")
		}
		s.Health.Rests = nil
	}
	if next := s.next(noon.Add(time.Hour)); !next.IsZero() {
		t.Errorf("the ads change at %s, want never", next)
	}
}

func TestDecodeStatus(t *testing.T) {
	s, err := decodeStatus([]byte(`{"images":["good:1","bad,1","bad\n- x","","bad \"quote\"","`+strings.Repeat("x", 2000)+`"]}`), noon)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"good:1"}, s.Images); diff != "" {
		t.Error(diff)
	}
}

func FuzzDecodeStatus(f *testing.F) {
	f.Add(`{"health":{"sick":{"reason":"x","noted":"2026-11-21T12:00:00Z","until":"2026-11-21T12:01:00Z"},"rests":{"1":{"until":"2026-11-21T12:01:00Z"}}},"images":["a"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := decodeStatus([]byte(text), noon)
		if err != nil {
			return
		}
		for line := range strings.Lines(s.ads(noon, map[string]bool{})) {
			name, _, ok := strings.Cut(line, " = ")
			if !strings.HasPrefix(line, "- pod ") && !strings.HasPrefix(line, "- rest") && (!ok || !strings.HasPrefix(name, "PodStarter") && name != "SlotId") {
				t.Fatalf("%q makes the line %q", text, line)
			}
		}
		s.next(noon)
	})
}

// TestMonitor: what is published is printed at once, and the end of the reader is
// the end of the monitor.
func TestMonitor(t *testing.T) {
	lock := t.TempDir()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- monitorStatus(lock, write) }()
	lines := bufio.NewScanner(read)
	wait := func(prefix string) string {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), prefix) {
				return lines.Text()
			}
		}
		t.Fatalf("the monitor ended before it printed %q", prefix)
		return ""
	}
	if got := wait("PodStarterHealthy"); got != "PodStarterHealthy = true" {
		t.Errorf("of a pod of which nothing is known: %s", got)
	}
	c := caretaker{store: healthStore{dir: t.TempDir(), longest: usual}, lock: lock}
	err = c.note(func(h health, now time.Time, longest time.Duration) health {
		return h.fellSick("of the plague", now, longest)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := wait("PodStarterHealthy"); got != "PodStarterHealthy = false" {
		t.Errorf("of a sick pod: %s", got)
	}
	if got := wait("PodStarterOfflineReason"); !strings.Contains(got, "of the plague") {
		t.Errorf("of a sick pod: %s", got)
	}
	// It becomes well by itself, when the time is over.
	err = c.note(func(h health, now time.Time, _ time.Duration) health {
		s := *h.Sick
		s.Until = now.Add(10 * time.Millisecond)
		h.Sick = &s
		return h
	})
	if err != nil {
		t.Fatal(err)
	}
	for wait("PodStarterHealthy") != "PodStarterHealthy = true" {
	}
	read.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestMonitorBelievesRootOnly: a link in place of the file is not followed.
func TestMonitorBelievesRootOnly(t *testing.T) {
	lock := t.TempDir()
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte(`{"images":["x"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(lock, statusFile)); err != nil {
		t.Fatal(err)
	}
	if s, err := readStatus(lock, noon); err == nil {
		t.Errorf("read %+v through a link", s)
	}
	if err := (status{}).write(lock); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != `{"images":["x"]}` {
		t.Errorf("wrote through a link: %s, %v", text, err)
	}
}

// TestKeeper: a sick pod is checked at once and again until it is well, one that
// is well is not.
func TestKeeper(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := caretaker{store: healthStore{dir: t.TempDir(), longest: usual}, lock: t.TempDir()}
	checks := make(chan error)
	heal := func(ctx context.Context) error {
		select {
		case result := <-checks:
			h, err := c.store.read()
			if err != nil || h.Sick == nil {
				t.Errorf("checked a pod that is %+v, %v", h, err)
				return err
			}
			return errors.Join(result, c.note(func(now health, at time.Time, _ time.Duration) health { return now.checked(*h.Sick, result, at) }))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	done := make(chan error, 1)
	go func() { done <- keepPod(ctx, c, time.Millisecond, heal, slog.New(slog.DiscardHandler)) }()
	err := c.note(func(h health, now time.Time, longest time.Duration) health { return h.fellSick("x", now, longest) })
	if err != nil {
		t.Fatal(err)
	}
	checks <- errors.New("sick") // at once
	checks <- nil                // and again
	// Published by whoever comes first, the check or the keeper.
	deadline := time.After(time.Minute)
	for {
		s, err := readStatus(c.lock, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if until, _ := s.Health.offline(time.Now()); s.Health.Sick != nil && until.IsZero() {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("the pod did not heal: %+v", s)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
