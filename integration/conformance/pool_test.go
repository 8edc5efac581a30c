//go:build pool

package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"podstarter/integration/harness"
)

var (
	caseFlag   = flag.String("case", "", "regular expression over the names of the cases to run, or over SUBJECT/NAME; empty for all")
	allFlag    = flag.Bool("all", false, "run the cases too that run only on request")
	atOnceFlag = flag.Int("at-once", 0, "cases that are under way at the same time; 0 for twice as many as each side has slots")
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Cases mostly wait for jobs: the limit below decides how many run at once, not
	// the number of processors.
	if err := flag.Set("test.parallel", "1000"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestConformance runs each case under the stock starter and ours, in one pool, and
// judges the differences.
func TestConformance(t *testing.T) {
	pattern, err := regexp.Compile(*caseFlag)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := harness.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	picked, err := Pick(Subjects(), pool.Versions, pattern, *allFlag)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d cases; %d more only with -all: %s", len(picked.Cases), len(picked.Left), strings.Join(picked.Left, ", "))
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

	// A claim that finds the next job waiting continues without a negotiation,
	// which takes longer than most jobs.
	atOnce := int64(2 * pool.Slots)
	if *atOnceFlag > 0 {
		atOnce = int64(*atOnceFlag)
	}
	room := semaphore.NewWeighted(atOnce)
	var again atomic.Int64
	for _, c := range picked.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			need := int64(1)
			if c.Alone {
				need = atOnce
			}
			rooms := share{room: room, all: atOnce}
			if err := rooms.take(t.Context(), need); err != nil {
				t.Fatal(err)
			}
			defer rooms.leave()
			judge(t, pool, rules, c, probe, &rooms, &again)
		})
	}
}

// share is how many slots a case has.
type share struct {
	room      *semaphore.Weighted
	held, all int64
}

// take waits for so many slots, in place of those that it has.
func (s *share) take(ctx context.Context, n int64) error {
	s.leave()
	if err := s.room.Acquire(ctx, n); err != nil {
		return err
	}
	s.held = n
	return nil
}

func (s *share) leave() {
	s.room.Release(s.held)
	s.held = 0
}

// secondTries is how many cases may be tried again. A difference that comes from
// the timing of a busy machine shows now and then and not twice; a real difference,
// or a fault, shows each time. More of them mean that something is wrong.
const secondTries = 8

// judge runs a case. If it fails, and few others have, it runs once more with the
// pool to itself; again counts such cases. A case that then passes is noted for the
// end of the run.
func judge(t *testing.T, pool *harness.Pool, rules []Rule, c Case, probe harness.File, rooms *share, again *atomic.Int64) {
	wrong := try(t, pool, rules, c, probe)
	if len(wrong) > 0 && again.Add(1) <= secondTries {
		t.Logf("tried again, because of:\n%s", strings.Join(wrong, "\n"))
		if err := rooms.take(t.Context(), rooms.all); err != nil {
			t.Fatal(err)
		}
		first := wrong
		if wrong = try(t, pool, rules, c, probe); len(wrong) == 0 {
			if err := noteFirst(os.Getenv(FirstFailures), pool.Versions.String(), c.Name, first); err != nil {
				t.Error(err)
			}
		}
	}
	for _, text := range wrong {
		t.Error(text)
	}
}

// try runs a case on both sides and says what is wrong.
func try(t *testing.T, pool *harness.Pool, rules []Rule, c Case, probe harness.File) (wrong []string) {
	began := time.Now()
	found, err := Both(t.Context(), pool, c, probe)
	t.Logf("took %s", time.Since(began).Round(100*time.Millisecond))
	if err != nil {
		return []string{err.Error()}
	}
	unlisted, stale := Judge(rules, c, found)
	for _, d := range unlisted {
		wrong = append(wrong, "a difference that is not listed: "+d.String())
	}
	for _, rule := range stale {
		wrong = append(wrong, "a listed difference that does not show any more: "+rule)
	}
	return wrong
}
