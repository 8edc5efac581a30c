package pool

import (
	"errors"
	"strings"
	"testing"
	"time"

	"podstarter/provisioner/demand"
	"podstarter/provisioner/flock"
)

// A collector that starts anew knows no schedd until its next update. That does not
// mean that no job waits.
func TestCollectorWithoutSchedds(t *testing.T) {
	query, err := demand.NewQuery(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Pool{Query: query, Prefix: "site"}
	tools(t, map[string]string{
		"condor_status": collector,
		"condor_q":      `printf 'Requirements = true\nUser = "alice@x"\nJobCount = 3\nJobIds = "1.0 ... 1.2"\n\n'`,
	})
	if groups, err := p.Demand(t.Context(), nil); err != nil || len(groups) != 1 {
		t.Fatalf("%+v, %v", groups, err)
	}
	tools(t, map[string]string{"condor_status": ""})
	if _, err := p.Demand(t.Context(), nil); !errors.Is(err, demand.ErrPartial) || !strings.Contains(err.Error(), "the schedd ap1,") {
		t.Errorf("all jobs are known: %v", err)
	}
	tools(t, map[string]string{"condor_status": collector})
	if _, err := p.Demand(t.Context(), nil); err != nil {
		t.Errorf("the schedds are there again: %v", err)
	}
}

// A schedd that stays away is forgotten, and so is one of a clock that was set back.
func TestMissingSchedds(t *testing.T) {
	var k known
	now := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	one := []flock.Schedd{{Source: demand.Source{Name: "AP1"}}}
	for _, c := range []struct {
		after   time.Duration
		there   []flock.Schedd
		missing bool
	}{
		{0, one, false},
		{time.Minute, nil, true},
		{5 * time.Minute, nil, true},
		{time.Minute, nil, false},
		{time.Minute, one, false},
		{-time.Hour, nil, false},
		{0, one, false},
	} {
		now = now.Add(c.after)
		if err := k.missing(c.there, now); errors.Is(err, demand.ErrPartial) != c.missing {
			t.Errorf("after %s: %v", c.after, err)
		}
	}
}
