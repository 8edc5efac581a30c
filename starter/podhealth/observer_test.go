package podhealth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"podstarter/payload"
)

// TestObserver: what an activation learns is in the file and published when the
// call returns.
func TestObserver(t *testing.T) {
	p := Pod{StateDir: t.TempDir(), PublishDir: t.TempDir(), LongestRest: usual}
	state := func() (sick bool, strikes int) {
		t.Helper()
		kept, err := p.Health()
		if err != nil {
			t.Fatal(err)
		}
		told, err := readPublished(p.PublishDir, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if (kept.Sick == nil) != (told.Health.Sick == nil) || kept.Rests["2"].Strikes != told.Health.Rests["2"].Strikes {
			t.Errorf("kept is %+v, but published is %+v", kept, told.Health)
		}
		return kept.Sick != nil, kept.Rests["2"].Strikes
	}
	log := slog.New(slog.DiscardHandler)
	o := p.Observe("slot2_7", log)
	steps := []struct {
		what    string
		do      func()
		sick    bool
		strikes int
	}{
		{"the job is to blame", func() { o.Failed(payload.User, "x") }, false, 0},
		{"nobody is", func() { o.Failed(payload.Unknown, "x") }, false, 0},
		{"the site is", func() { o.Failed(payload.Site, "x") }, false, 1},
		{"the pod is", func() { o.Failed(payload.Pilot, "x") }, true, 1},
		{"the next job has a container", func() { o = p.Observe("slot2", log); o.Bound() }, false, 1},
		{"in which something starts", func() { o.Started() }, false, 0},
		{"the pod is to blame, but not", func() { o.Failed(payload.Pilot, "x") }, true, 0},
		{"because a second program starts", func() { o.Started() }, true, 0},
	}
	for _, step := range steps {
		step.do()
		if sick, strikes := state(); sick != step.sick || strikes != step.strikes {
			t.Fatalf("%s: sick %v, %d strikes; want %v, %d", step.what, sick, strikes, step.sick, step.strikes)
		}
	}
}

// TestRest: a slot that has no reason to rest goes on, one that has waits until
// its time is over or the activation ends.
func TestRest(t *testing.T) {
	var said bytes.Buffer
	p := Pod{StateDir: t.TempDir(), PublishDir: t.TempDir(), LongestRest: usual}
	o := p.Observe("slot1", slog.New(slog.NewTextHandler(&said, nil)))
	ended := errors.New("the activation ends")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	if err := o.Rest(ctx); err != nil {
		t.Errorf("without a reason to rest: %v", err)
	}
	o.Failed(payload.Site, "registry away")
	if err := o.Rest(ctx); !errors.Is(err, ended) {
		t.Errorf("got %v, want the cause of the end", err)
	}
	for _, words := range []string{"This slot takes no jobs for a while", "This slot should rest; waiting 10s", "registry away"} {
		if !strings.Contains(said.String(), words) {
			t.Errorf("no %q in the log:\n%s", words, said.String())
		}
	}
	if err := p.Observe("slot2", o.log).Rest(ctx); err != nil {
		t.Errorf("another slot: %v", err)
	}
	err := p.note(func(h Health, now time.Time) Health {
		h.Rests["1"] = Rest{Noted: now, Until: now.Add(10 * time.Millisecond), Strikes: 1}
		return h
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Rest(t.Context()); err != nil {
		t.Errorf("when its time is over: %v", err)
	}
}

// TestNotNoted: the log says what follows if the health cannot be kept.
func TestNotNoted(t *testing.T) {
	var said bytes.Buffer
	p := Pod{StateDir: t.TempDir(), PublishDir: t.TempDir(), LongestRest: usual}
	if err := os.Chmod(p.StateDir, 0o777); err != nil {
		t.Fatal(err)
	}
	o := p.Observe("slot1", slog.New(slog.NewTextHandler(&said, nil)))
	o.Failed(payload.Site, "x")
	o.Bound()
	for _, words := range []string{"The slot goes on taking jobs", "That this pod is well could not be noted"} {
		if !strings.Contains(said.String(), words) {
			t.Errorf("no %q in the log:\n%s", words, said.String())
		}
	}
}

// TestPublish: the images are published with the health, and an error of either
// does not hide the other.
func TestPublish(t *testing.T) {
	broken := errors.New("no list")
	p := Pod{StateDir: t.TempDir(), PublishDir: t.TempDir(), WarmImages: func() ([]string, error) { return []string{"debian:stable"}, broken }}
	if err := p.Publish(); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if s, err := readPublished(p.PublishDir, noon); err != nil || len(s.Images) != 1 {
		t.Errorf("published %+v, %v", s, err)
	}
}
