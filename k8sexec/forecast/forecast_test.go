package forecast

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestImages(t *testing.T) {
	const second = time.Second
	for _, tt := range []struct {
		name   string
		starts []Start
		ready  map[string]int
		free   int
		want   []string
	}{
		{name: "nothing known", free: 3},
		{name: "nothing free", starts: []Start{{"a", 0}}},
		{name: "one image", starts: []Start{{"a", 0}, {"a", 9 * second}}, free: 2, want: []string{"a", "a"}},
		{name: "the latest wins", starts: []Start{{"old", 9 * second}, {"new", 0}}, free: 1, want: []string{"new"}},
		{name: "a tie", starts: []Start{{"a", second}, {"b", second}}, free: 1, want: []string{"a"}},
		{name: "half and half", starts: []Start{{"a", second}, {"b", second}}, free: 4, want: []string{"a", "b", "a", "b"}},
		{name: "what is there counts", starts: []Start{{"a", second}, {"b", second}}, ready: map[string]int{"a": 2}, free: 2, want: []string{"b", "b"}},
		{name: "long jobs start seldom", starts: []Start{{"long", 5 * time.Hour}, {"long", 6 * time.Hour}, {"short", 3 * second}}, free: 3, want: []string{"short", "short", "short"}},
		{name: "the clock was set back", starts: []Start{{"a", -time.Hour}, {"b", 0}}, free: 2, want: []string{"a", "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Images(tt.starts, tt.ready, tt.free)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSuperfluous(t *testing.T) {
	const second = time.Second
	for _, tt := range []struct {
		name   string
		starts []Start
		ready  map[string]int
		want   string
	}{
		{name: "nothing known", ready: map[string]int{"a": 1}},
		{name: "nobody wants it any more", starts: []Start{{"b", 0}, {"b", second}}, ready: map[string]int{"a": 2}, want: "a"},
		{name: "a share of one half", starts: []Start{{"a", second}, {"b", second}}, ready: map[string]int{"a": 1}},
		{name: "one too many and one too few", starts: []Start{{"a", second}, {"b", second}}, ready: map[string]int{"a": 2}, want: "a"},
		{name: "as it should be", starts: []Start{{"a", second}, {"b", second}}, ready: map[string]int{"a": 1, "b": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Superfluous(tt.starts, tt.ready); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
