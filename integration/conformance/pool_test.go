//go:build pool

package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"podstarter/integration/harness"
)

var (
	caseFlag   = flag.String("case", "", "regular expression over the names of the cases to run, or over SUBJECT/NAME; empty for all")
	atOnceFlag = flag.Int("at-once", 0, "cases that are under way at the same time; 0 for twice as many as each side has slots")
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Cases wait most of the time, for jobs: how many run at once is decided below,
	// not by the number of processors.
	if err := flag.Set("test.parallel", "1000"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestConformance runs each case under the stock starter and ours, in one pool,
// and judges what differs.
func TestConformance(t *testing.T) {
	picked, err := regexp.Compile(*caseFlag)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := harness.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !pool.HasStock() {
		t.Fatal("the pool has no execution point with the stock starter; start one with: pool up --stock --slots 4")
	}
	probe, err := pool.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	rules = slices.DeleteFunc(rules, func(r Rule) bool { return !r.For(pool.Versions) })
	setup, cancel := context.WithTimeoutCause(t.Context(), time.Minute, fmt.Errorf("setting up took longer than a minute"))
	defer cancel()
	remove, err := Install(setup, pool, Subjects())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := remove(ctx); err != nil {
			t.Error(err)
		}
	})

	// A claim that finds the next job waiting goes on without a negotiation, which
	// takes longer than most jobs.
	atOnce := int64(2 * pool.Slots)
	if *atOnceFlag > 0 {
		atOnce = int64(*atOnceFlag)
	}
	room := semaphore.NewWeighted(atOnce)
	ran := 0
	for _, subject := range Subjects() {
		for _, c := range subject.Cases {
			if !c.For(pool.Versions) || !picked.MatchString(c.Name) && !picked.MatchString(subject.Name+"/"+c.Name) {
				continue
			}
			ran++
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				need := int64(1)
				if c.Alone {
					need = atOnce
				}
				if err := room.Acquire(t.Context(), need); err != nil {
					t.Fatal(err)
				}
				defer room.Release(need)
				judge(t, pool, rules, c, probe)
			})
		}
	}
	if ran == 0 {
		t.Fatalf("no case is called like %q", *caseFlag)
	}
}

func judge(t *testing.T, pool *harness.Pool, rules []Rule, c Case, probe harness.File) {
	began := time.Now()
	found, err := Both(t.Context(), pool, c, probe)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("took %s", time.Since(began).Round(100*time.Millisecond))
	unlisted, stale := Judge(rules, c, found)
	for _, d := range unlisted {
		t.Errorf("a difference that is not listed: %s", d)
	}
	for _, rule := range stale {
		t.Errorf("a listed difference that does not show any more: %s", rule)
	}
}
