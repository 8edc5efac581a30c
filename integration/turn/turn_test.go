package turn

import (
	"testing"
	"time"
)

func TestRunsComeToAllParts(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 30, 0, 0, time.UTC)
	for hours := 1; hours < Parts; hours++ {
		seen := map[Turn]bool{}
		for i := range Parts {
			seen[At(now.Add(time.Duration(i*hours)*time.Hour))] = true
		}
		if len(seen) != Parts || seen[None] {
			t.Errorf("runs %d hours apart have %d of %d parts: %v", hours, len(seen), Parts, seen)
		}
	}
	if a, b := At(now), At(now.Add(10*time.Minute)); a != b {
		t.Errorf("two runs of an hour have the parts %s and %s", a, b)
	}
}

func TestParse(t *testing.T) {
	now := time.Now()
	for text, want := range map[string]Turn{"": At(now), "none": None, "all": All, "1/7": 1, "7/7": 7} {
		got, err := Parse(text, now)
		if err != nil || got != want || text != "" && got.String() != text {
			t.Errorf("turn %q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"0/7", "8/7", "3", "3/8", "x", "3/7x", "-1"} {
		if got, err := Parse(text, now); err == nil {
			t.Errorf("turn %q: %s, want an error", text, got)
		}
	}
}

func TestHas(t *testing.T) {
	for _, name := range []string{"a", "b", ""} {
		if n := Of(name); n < 1 || n > Parts || !n.Has(name) || (n%Parts + 1).Has(name) || None.Has(name) || !All.Has(name) {
			t.Errorf("%q has the part %d", name, n)
		}
	}
}
