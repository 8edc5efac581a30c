//go:build pool

package conformance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"podstarter/condor/image"
	"podstarter/integration/harness"
	"podstarter/integration/turn"
)

var (
	caseFlag   = flag.String("case", "", "regular expression over the names of the cases to run, or over SUBJECT/NAME; empty for all")
	allFlag    = flag.Bool("all", false, "run all cases on request too, as -turn all does")
	budgetFlag = flag.Duration("budget", 0, "time in which cases may begin; those left are listed, and the hour decides with which it begins; 0 for all")
	turnFlag   = flag.String("turn", "", "part of the cases on request that runs too, as 3/7, or none or all; empty for a part that changes by the hour")
	recordFlag = flag.Bool("record", false, "write what becomes of the cases to endings/, in place of what must become of them; read it before you commit it")
	worldFlag  = flag.String("world", "", "what is otherwise than in an ordinary run: see worlds.go")
	foundFlag  = flag.String("found", "", "file to which all differences are appended, listed or not, each as a line of JSON")
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
	part, err := turn.Parse(*turnFlag, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if *allFlag {
		part = turn.All
	}
	picked, err := Pick(Subjects(), pool.Kind(), pool.Has, pattern, part)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d cases, %d of them because it is turn %s; %d others only with -all: %s; %d others only with Docker or Apptainer in the pool",
		len(picked.Cases), len(picked.InTurn), part, len(picked.Left), strings.Join(picked.Left, ", "), len(picked.Beside))
	if err := noteTurn(os.Getenv(InTurn), pool.Kind().String(), part, picked); err != nil {
		t.Fatal(err)
	}
	probe, err := pool.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	world, err := WorldNamed(*worldFlag)
	if err != nil {
		t.Fatal(err)
	}
	musts, err := Musts()
	if err != nil {
		t.Fatal(err)
	}
	of := &court{pool: pool, world: world, probe: probe, musts: musts, reasons: map[string]int{}}
	for _, r := range rules {
		if r.For(pool.Kind()) {
			of.rules = append(of.rules, r.With(pool.Versions))
		}
	}
	if *recordFlag {
		t.Cleanup(func() {
			if err := of.record(); err != nil {
				t.Error(err)
			}
		})
	}
	began := time.Now()
	t.Cleanup(func() { t.Log(of.summary(len(picked.Cases), time.Since(began))) })
	if NeedsImageFiles(picked.Cases) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Minute, errors.New("building images took longer than five minutes"))
		defer cancel()
		if err := pool.BuildImageFiles(ctx, imageFiles); err != nil {
			t.Fatal(err)
		}
		busybox, err := pool.ImageFile("busybox.sif")
		if err != nil {
			t.Fatal(err)
		}
		web, err := pool.Web()
		if err == nil {
			err = web.Put(webImage, busybox)
		}
		if err != nil {
			t.Fatal(err)
		}
		world.Execute += image.KnobPaths + " = " + harness.ImageDirectories + "\n"
	}
	if NeedsCarrier(picked.Cases) {
		world.Execute += image.KnobCarrier + " = " + pool.Images["empty"] + "\n"
	}
	setup, cancel := context.WithTimeoutCause(t.Context(), time.Minute, fmt.Errorf("setting up took longer than a minute"))
	defer cancel()
	if err := of.users(setup); err != nil {
		t.Fatal(err)
	}
	remove, err := Install(setup, pool, Subjects(), world)
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

	if NeedsCarrier(picked.Cases) {
		if err := awaitImageFiles(setup, pool); err != nil {
			t.Fatal(err)
		}
	}

	// A claim that finds the next job waiting continues without a negotiation,
	// which takes longer than most jobs.
	atOnce := int64(2 * pool.Slots)
	if *atOnceFlag > 0 {
		atOnce = int64(*atOnceFlag)
	}
	room := semaphore.NewWeighted(atOnce)
	budget := &Budget{For: *budgetFlag, Now: time.Now}
	t.Cleanup(func() {
		if err := noteLeft(os.Getenv(InTurn), pool.Kind(), budget, budget.Left()); err != nil {
			t.Error(err)
		}
	})
	for _, c := range budget.Order(picked.Cases) {
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
			if !budget.Begins(c.Name) {
				t.Skipf("no time is left of the %s for all cases; the end of the run lists those left out", budget.For)
			}
			of.judge(t, c, &rooms)
		})
	}
}

// awaitImageFiles waits until our slots say that they take images that are files. A startd that was told twice
// within seconds to read its configuration asks its starter only the first time what it can do.
func awaitImageFiles(ctx context.Context, pool *harness.Pool) error {
	const again = 10 // turns of the poll
	turns := 0
	return harness.Poll(ctx, "our slots to say that they take .sif files", func() (bool, error) {
		if turns++; turns%again == 0 {
			if out, err := pool.EP(ctx, harness.Ours, "condor_reconfig"); err != nil {
				return false, fmt.Errorf("%w: %s", err, out)
			}
		}
		out, err := pool.AP(ctx, "condor_status", "-constraint", "HasPodStarter && HasSIF =!= true", "-af", "Name")
		return err == nil && strings.TrimSpace(out) == "", nil
	})
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

// A court judges cases in one pool.
type court struct {
	pool  *harness.Pool
	as    map[string]*harness.Pool // for the world's users
	world World
	probe harness.File
	rules []Rule
	musts []Must
	again atomic.Int64 // cases that were tried again

	learning sync.Mutex
	learnt   []lesson
	reasons  map[string]int // differences by reason
}

// A lesson is what became of a case.
type lesson struct {
	name        string
	stock, ours Ending
}

// users gives the users of the world what they need to submit jobs.
func (of *court) users(ctx context.Context) error {
	of.as = map[string]*harness.Pool{}
	for _, name := range of.world.Users {
		pool, err := of.pool.As(ctx, name)
		if err != nil {
			return err
		}
		of.as[name] = pool
	}
	return nil
}

// judge runs a case. If it fails, and few others have, it runs once more with the
// pool to itself. A case that then passes is noted for the end of the run.
func (of *court) judge(t *testing.T, c Case, rooms *share) {
	wrong := of.try(t, c)
	if len(wrong) > 0 && of.again.Add(1) <= secondTries {
		t.Logf("tried again, because of:\n%s", strings.Join(wrong, "\n"))
		if err := rooms.take(t.Context(), rooms.all); err != nil {
			t.Fatal(err)
		}
		first := wrong
		if wrong = of.try(t, c); len(wrong) == 0 {
			if err := noteFirst(os.Getenv(FirstFailures), of.pool.Kind().String(), c.Name, first); err != nil {
				t.Error(err)
			}
		}
	}
	for _, text := range wrong {
		t.Error(text)
	}
}

// try runs a case on both sides and says what is wrong.
func (of *court) try(t *testing.T, c Case) (wrong []string) {
	began := time.Now()
	pool, by := of.pool, ""
	if user := of.world.UserOf(c.Name); user != "" {
		pool, by = of.as[user], ", submitted by "+user
	}
	stock, ours, err := Both(t.Context(), pool, of.world, c, of.probe)
	t.Logf("took %s%s", time.Since(began).Round(100*time.Millisecond), by)
	if err != nil {
		return []string{err.Error()}
	}
	if *recordFlag {
		of.learn(lesson{c.Name, stock.Ending(), ours.Ending()})
	} else if err := Unmet(of.musts, c.Name, of.pool.Kind(), stock.Ending(), ours.Ending()); err != nil {
		wrong = append(wrong, err.Error())
	}
	found := Compare(c.Name, stock, ours, of.world.Grace)
	if err := noteFound(*foundFlag, of.pool.Kind(), c, found, stock.Waits, ours.Waits); err != nil {
		t.Error(err)
	}
	of.count(Tally(of.rules, found))
	unlisted, stale := Judge(of.rules, c, found)
	for _, d := range unlisted {
		wrong = append(wrong, "a difference that is not listed: "+d.String())
	}
	for _, rule := range stale {
		wrong = append(wrong, "a listed difference that does not show any more: "+rule)
	}
	return wrong
}

// count adds differences to those by reason.
func (of *court) count(tally map[string]int) {
	of.learning.Lock()
	defer of.learning.Unlock()
	for reason, n := range tally {
		of.reasons[reason] += n
	}
}

// summary is what a run comes to. Its second tries have counted twice.
func (of *court) summary(cases int, took time.Duration) string {
	var b strings.Builder
	all := 0
	names := slices.SortedFunc(maps.Keys(of.reasons), func(a, b string) int { return of.reasons[b] - of.reasons[a] })
	for _, name := range names {
		all += of.reasons[name]
		fmt.Fprintf(&b, "\n%6d  %s", of.reasons[name], name)
	}
	return fmt.Sprintf("%d cases in %s, %d of them tried again; %d differences, by reason:%s", cases, took.Round(time.Second), of.again.Load(), all, b.String())
}

// learn keeps the last of what became of a case.
func (of *court) learn(l lesson) {
	of.learning.Lock()
	defer of.learning.Unlock()
	of.learnt = slices.DeleteFunc(of.learnt, func(o lesson) bool { return o.name == l.name })
	of.learnt = append(of.learnt, l)
}

// record writes what was learnt into the files of endings/, where the cases have the
// order of their tables.
func (of *court) record() error {
	for _, s := range Subjects() {
		var musts []Must
		for _, c := range s.Cases {
			said := slices.DeleteFunc(slices.Clone(of.musts), func(m Must) bool { return m.Case != c.Name })
			if i := slices.IndexFunc(of.learnt, func(l lesson) bool { return l.name == c.Name }); i >= 0 {
				said = Learn(said, c.Name, of.pool.Kind(), of.learnt[i].stock, of.learnt[i].ours)
			}
			musts = append(musts, said...)
		}
		if len(musts) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join("endings", s.Name), []byte(WriteMusts(musts)), 0o644); err != nil {
			return fmt.Errorf("writing what becomes of the cases of %s: %w", s.Name, err)
		}
	}
	return nil
}
