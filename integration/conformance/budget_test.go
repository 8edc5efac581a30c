package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/turn"
)

// TestBudget: so many cases begin as the time allows; basic ones always first, others by the hour.
func TestBudget(t *testing.T) {
	now := time.Unix(0, 0)
	cases := []Case{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}, {Name: "f"}, {Name: "g"}, {Name: "h"}, basicCases[0]}
	orders := map[string]bool{}
	first := map[string]bool{}
	for range turn.Parts {
		b := &Budget{For: time.Minute, Now: func() time.Time { return now }}
		got := namesOf(b.Order(cases))
		if got[0] != basicCases[0].Name || len(got) != len(cases) {
			t.Errorf("order %q; want %s first, and all", got, basicCases[0].Name)
		}
		orders[strings.Join(got, " ")] = true
		first[got[1]] = true
		now = now.Add(time.Hour)
	}
	if len(orders) < 4 || len(first) < 4 {
		t.Errorf("in %d hours, %d orders and %d cases that came first", turn.Parts, len(orders), len(first))
	}
	none := &Budget{Now: time.Now}
	if diff := cmp.Diff(namesOf(cases), namesOf(none.Order(cases))); diff != "" || !none.Begins("a") {
		t.Errorf("without a budget all run as they are listed (-want +got):\n%s", diff)
	}

	b := &Budget{For: time.Minute, Now: func() time.Time { return now }}
	var began []string
	for i := range 9 {
		if name := fmt.Sprint(i); b.Begins(name) {
			began = append(began, name)
		}
		now = now.Add(20 * time.Second)
	}
	if diff := cmp.Diff([]string{"0", "1", "2"}, began); diff != "" {
		t.Errorf("began (-want +got):\n%s", diff)
	}
	if !b.Begins(basicCases[0].Name) {
		t.Error("a basic case does not begin")
	}
	if diff := cmp.Diff([]string{"3", "4", "5", "6", "7", "8"}, b.Left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func namesOf(cases []Case) []string {
	var all []string
	for _, c := range cases {
		all = append(all, c.Name)
	}
	return all
}
