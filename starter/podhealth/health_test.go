package podhealth

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const usual = 300 * time.Second

// TestHealth goes through the lives of a pod, step by step.
func TestHealth(t *testing.T) {
	var h Health
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
		{what: "success of slot 1", do: func() { h = h.started("1") }},
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
		{what: "turned off", do: func() { h = Health{}.fellSick("x", at, 0).tired("1", "x", at, 0) }},
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
	first := Health{}.fellSick("a", noon, usual)
	seen := first.checked(*first.Sick, errors.New("a"), noon)
	second := seen.started("1").fellSick("b", noon.Add(time.Second), usual)
	if got := second.checked(*seen.Sick, nil, noon.Add(2*time.Second)); !cmp.Equal(got, second) {
		t.Errorf("a check of the first sickness changed the second: %s", cmp.Diff(second, got))
	}
}

func TestSane(t *testing.T) {
	now := noon
	tests := map[string]struct {
		h       Health
		blocked bool
	}{
		"as written":             {h: Health{}.fellSick("x", now, usual), blocked: true},
		"clock was set back":     {h: Health{}.fellSick("x", now.Add(time.Hour), usual)},
		"ends too late":          {h: Health{Sick: &Sickness{Noted: now, Until: now.Add(1000 * time.Hour), Tries: 1}}},
		"rest ends too late":     {h: Health{Rests: map[string]Rest{"1": {Noted: now, Until: now.Add(1000 * time.Hour), Strikes: 1}}}},
		"rest":                   {h: Health{}.tired("1", "x", now, usual), blocked: true},
		"rest of no slot at all": {h: Health{Rests: map[string]Rest{"../1": {Noted: now, Until: now.Add(time.Second)}}}},
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
	h := Health{Rests: map[string]Rest{"1": {Noted: now, Until: now, Strikes: 1 << 62}}}.sane(now).tired("1", "x", now, usual)
	if until, _ := h.blocked("1", now); until.Sub(now) != usual {
		t.Errorf("after very many strikes the slot rests %s", until.Sub(now))
	}
	h = Health{Rests: map[string]Rest{"1": {Noted: now, Until: now, Strikes: -5}}}.sane(now).tired("1", "x", now, usual)
	if until, _ := h.blocked("1", now); until.Sub(now) != 20*time.Second {
		t.Errorf("after less than no strikes the slot rests %s", until.Sub(now))
	}
}

func TestShortened(t *testing.T) {
	if got := shortened("a\n\tb\x00c" + strings.Repeat("ü", maxReason)); len(got) > maxReason || !strings.HasPrefix(got, "a b cü") {
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

func TestStore(t *testing.T) {
	s := store{dir: t.TempDir()}
	if h, err := s.read(); err != nil || !cmp.Equal(h, Health{}) {
		t.Fatalf("nothing is known, but: %+v, %v", h, err)
	}
	// Several starters at once: no strike is lost.
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := s.update(func(h Health) Health { return h.tired("3", "x", time.Now(), usual) }); err != nil {
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
		if h, err := s.read(); err == nil || !cmp.Equal(h, Health{}) {
			t.Errorf("%s: read %+v, %v", name, h, err)
		}
	}
	if err := s.update(func(h Health) Health { return h.tired("3", "x", time.Now(), usual) }); err != nil {
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
