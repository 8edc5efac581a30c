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

// TestIndexComesToAll: runs so many hours apart come to all of so many things.
func TestIndexComesToAll(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 30, 0, 0, time.UTC)
	for _, n := range []int{Parts, 10, 21} {
		for _, hours := range []int{1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 18, 20, 24, 48, 7 * 24} {
			if n == Parts && hours%Parts == 0 {
				continue // weeks: Parts is prime itself
			}
			seen := map[int]bool{}
			for i := range 2*n + 4 {
				at := Index(now.Add(time.Duration(i*hours)*time.Hour), n)
				if at < 0 || at >= n {
					t.Fatalf("%d of %d", at, n)
				}
				seen[at] = true
			}
			if len(seen) != n {
				t.Errorf("runs %d hours apart come to %d of %d", hours, len(seen), n)
			}
		}
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
