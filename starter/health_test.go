package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const usual = 300 * time.Second

// TestHealth goes through the lives of a pod, step by step.
func TestHealth(t *testing.T) {
	var h health
	at := noon
	lasts := func(slot string) time.Duration {
		until, _ := h.blocked(slot, at)
		if until.IsZero() {
			return 0
		}
		return until.Sub(at)
	}
	steps := []struct {
		what      string
		do        func()
		one, two  time.Duration // for which slots 1 and 2 take no jobs then
		later     time.Duration // time that passes after the step
		oneReason string
	}{
		{what: "bad luck", do: func() { h = h.tired("1", "registry away", at, usual) }, one: 10 * time.Second, oneReason: "registry away", later: 11 * time.Second},
		{what: "the rest is over", do: func() {}, one: 0},
		{what: "again", do: func() { h = h.tired("1", "registry away", at, usual) }, one: 20 * time.Second, later: time.Second},
		{what: "the other slot", do: func() { h = h.tired("2", "x", at, usual) }, one: 19 * time.Second, two: 10 * time.Second},
		{what: "slot 1 gets a container, in which nothing has started", do: func() { h = h.bound() }, one: 19 * time.Second, two: 10 * time.Second, later: 30 * time.Second},
		{what: "nor can be started", do: func() { h = h.tired("1", "x", at, usual) }, one: 40 * time.Second},
		{what: "success of slot 1", do: func() { h = h.well("1") }},
		{what: "slot 1 begins anew, slot 2 does not", do: func() {
			h = h.tired("1", "x", at, usual)
			h = h.tired("2", "x", at, usual)
		}, one: 10 * time.Second, two: 20 * time.Second, later: time.Hour},
		{what: "never more than the limit", do: func() {
			for range 20 {
				h = h.tired("2", "x", at, usual)
			}
		}, two: usual, later: usual},
		{what: "sick", do: func() { h = h.fellSick("no permission", at, usual) }, one: time.Minute, two: time.Minute, oneReason: "no permission", later: time.Second},
		{what: "another slot finds the same", do: func() { h = h.fellSick("no permission", at, usual) }, one: time.Minute, two: time.Minute, later: 61 * time.Second},
		{what: "one more try, sick still", do: func() { h = h.fellSick("no permission", at, usual) }, one: 2 * time.Minute, two: 2 * time.Minute},
		{what: "a check that finds nothing means nothing yet", do: func() { h = h.checked(*h.Sick, nil, at) }, one: 2 * time.Minute, two: 2 * time.Minute},
		{what: "a check that finds it", do: func() { h = h.checked(*h.Sick, errors.New("mend it"), at) }, one: 2 * longestCheck, two: 2 * longestCheck, oneReason: "mend it", later: 2 * time.Minute},
		{what: "finds it again, no job need try", do: func() { h = h.checked(*h.Sick, errors.New("mend it"), at) }, one: 2 * longestCheck, two: 2 * longestCheck, later: time.Second},
		{what: "mended", do: func() { h = h.checked(*h.Sick, nil, at) }},
		{what: "but not for jobs: a longer time", do: func() { h = h.fellSick("x", at, usual) }, one: 4 * time.Minute, two: 4 * time.Minute},
		{what: "a job got its container", do: func() { h = h.bound() }},
		{what: "the next sickness is short again", do: func() { h = h.fellSick("x", at, usual) }, one: time.Minute, two: time.Minute, later: time.Hour},
		{what: "never more than six times the limit", do: func() {
			for range 20 {
				h = h.fellSick("x", at, usual)
				at = h.Sick.Until
			}
			at = at.Add(-longerSick * usual)
		}, one: longerSick * usual, two: longerSick * usual, later: longerSick * usual},
		{what: "turned off", do: func() { h = health{}.fellSick("x", at, 0).tired("1", "x", at, 0) }},
	}
	for _, step := range steps {
		step.do()
		if one, two := lasts("1"), lasts("2"); one != step.one || two != step.two {
			t.Fatalf("%s: slots take no jobs for %s and %s, want %s and %s", step.what, one, two, step.one, step.two)
		}
		if _, reason := h.blocked("1", at); step.oneReason != "" && reason != step.oneReason {
			t.Fatalf("%s: the reason is %q", step.what, reason)
		}
		at = at.Add(step.later)
	}
}

// TestCheckOfAnotherSickness: what a check finds counts for the sickness that it
// was made for.
func TestCheckOfAnotherSickness(t *testing.T) {
	first := health{}.fellSick("a", noon, usual)
	seen := first.checked(*first.Sick, errors.New("a"), noon)
	second := seen.well("1").fellSick("b", noon.Add(time.Second), usual)
	if got := second.checked(*seen.Sick, nil, noon.Add(2*time.Second)); !cmp.Equal(got, second) {
		t.Errorf("a check of the first sickness changed the second: %s", cmp.Diff(second, got))
	}
}

func TestSane(t *testing.T) {
	now := noon
	tests := map[string]struct {
		h       health
		blocked bool
	}{
		"as written":             {h: health{}.fellSick("x", now, usual), blocked: true},
		"clock was set back":     {h: health{}.fellSick("x", now.Add(time.Hour), usual)},
		"ends too late":          {h: health{Sick: &sickness{Noted: now, Until: now.Add(1000 * time.Hour), Tries: 1}}},
		"rest ends too late":     {h: health{Rests: map[string]rest{"1": {Noted: now, Until: now.Add(1000 * time.Hour), Strikes: 1}}}},
		"rest":                   {h: health{}.tired("1", "x", now, usual), blocked: true},
		"rest of no slot at all": {h: health{Rests: map[string]rest{"../1": {Noted: now, Until: now.Add(time.Second)}}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			until, _ := tt.h.sane(now).blocked("1", now)
			if until.IsZero() == tt.blocked {
				t.Errorf("blocked until %s, want it blocked: %v", until, tt.blocked)
			}
		})
	}
	// Numbers that would overflow the back-off.
	h := health{Rests: map[string]rest{"1": {Noted: now, Until: now, Strikes: 1 << 62}}}.sane(now).tired("1", "x", now, usual)
	if until, _ := h.blocked("1", now); until.Sub(now) != usual {
		t.Errorf("after very many strikes the slot rests %s", until.Sub(now))
	}
	h = health{Rests: map[string]rest{"1": {Noted: now, Until: now, Strikes: -5}}}.sane(now).tired("1", "x", now, usual)
	if until, _ := h.blocked("1", now); until.Sub(now) != 20*time.Second {
		t.Errorf("after less than no strikes the slot rests %s", until.Sub(now))
	}
}

func TestShortened(t *testing.T) {
	if got := shortened("a\n\tb\x00c" + strings.Repeat("ü", maxHealthReason)); len(got) > maxHealthReason || !strings.HasPrefix(got, "a b cü") {
		t.Errorf("%d bytes: %.20q", len(got), got)
	}
}

func TestSlotID(t *testing.T) {
	for name, want := range map[string]string{
		"slot1": "1", "slot12_3": "12", "slot1_1": "1", "gpu2_1": "2", "": "", "slot": "", "slot0": "", "slot01": "", "slot1x": "", "slot123456": "", "_1": "",
	} {
		if got := slotID(name); got != want {
			t.Errorf("slotID(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestBlame(t *testing.T) {
	verdict := func(blame payload.Blame) error {
		return failure.New(1, 0, fmt.Errorf("bind: %w", &payload.Verdict{Blame: blame, Message: "m"}))
	}
	refused := func(code string) error {
		return &payload.RequestError{Op: payload.OpStart, Code: code, Message: "m"}
	}
	tests := map[string]struct {
		err  error
		ran  bool
		want payload.Blame
	}{
		"what an earlier job left":       {err: failure.OfStart(refused(payload.CodeNotEmpty), job.Command{}), want: payload.Site},
		"so before a script":             {err: (&activation{}).insideFailure(t.Context(), refused(payload.CodeNotEmpty)), want: payload.Site},
		"what this job left":             {err: failure.New(shadow.VacateContainerError, 0, refused(payload.CodeNotEmpty)), ran: true, want: payload.Unknown},
		"refused for another reason":     {err: failure.OfStart(refused(payload.CodeBadRequest), job.Command{}), want: payload.Unknown},
		"user":                           {err: verdict(payload.User), want: payload.Unknown},
		"site":                           {err: verdict(payload.Site), want: payload.Site},
		"unknown is the site's":          {err: verdict(payload.Unknown), want: payload.Site},
		"pilot":                          {err: verdict(payload.Pilot), want: payload.Pilot},
		"the job may have done it":       {err: verdict(payload.Site), ran: true, want: payload.Unknown},
		"the pod ends under a job":       {err: verdict(payload.Pilot), ran: true, want: payload.Pilot},
		"no sandbox":                     {err: failure.New(shadow.VacateScratchDirError, 0, errors.New("disk full")), want: payload.Site},
		"a hold for another reason":      {err: failure.New(13, 2, errors.New("no input file")), want: payload.Unknown},
		"an error that nobody expected":  {err: errors.New("x"), want: payload.Unknown},
		"verdict for the user, then ran": {err: verdict(payload.User), ran: true, want: payload.Unknown},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, _ := failure.Blame(tt.err, tt.ran); got != tt.want {
				t.Errorf("blame %v, want %v", got, tt.want)
			}
		})
	}
}

func TestHealthStore(t *testing.T) {
	s := healthStore{dir: t.TempDir(), longest: usual}
	if h, err := s.read(); err != nil || !cmp.Equal(h, health{}) {
		t.Fatalf("nothing is known, but: %+v, %v", h, err)
	}
	// Several starters at once: no strike is lost.
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := s.update(func(h health) health { return h.tired("3", "x", time.Now(), usual) }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	h, err := s.read()
	if err != nil || h.Rests["3"].Strikes != 20 {
		t.Errorf("after 20 strikes: %+v, %v", h, err)
	}
	path := filepath.Join(s.dir, healthFile)
	for name, text := range map[string]string{"no JSON": "{", "too long": strings.Repeat(" ", maxHealthFile+1), "another type": `{"sick":[]}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if h, err := s.read(); err == nil || !cmp.Equal(h, health{}) {
			t.Errorf("%s: read %+v, %v", name, h, err)
		}
	}
	if err := s.update(func(h health) health { return h.tired("3", "x", time.Now(), usual) }); err != nil {
		t.Fatal(err)
	}
	if h, err := s.read(); err != nil || h.Rests["3"].Strikes != 1 {
		t.Errorf("a broken file was not replaced: %+v, %v", h, err)
	}
	if err := os.Chmod(s.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := s.read(); err == nil {
		t.Error("a directory that everybody can write to was believed")
	}
}
