//go:build pool

package podfailures

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"podstarter/integration/harness"
)

var (
	record = flag.Bool("record", false, "note what was measured in record.json, from which docs/operator/failures.md is written")
	only   = flag.String("rows", "", "a regular expression: only rows with such names")
	guest  = flag.Bool("guest", false, "the rows about the node, too: this is a guest")
	places = flag.Int("places", 7, "execution points that fail at the same time")
)

// result is the result of a row.
type result struct {
	stage *stage
	err   error
	began time.Time
	ended time.Time
}

// TestFailures runs all rows, several at the same time, and then reports them one by one.
func TestFailures(t *testing.T) {
	var rows []Row
	pattern := regexp.MustCompile(*only)
	for _, row := range Rows {
		if _, ok := actions[row.Name]; !ok {
			t.Errorf("row %q has no action", row.Name)
		}
		if !pattern.MatchString(row.Name) {
			continue
		}
		if row.Guest && !*guest {
			t.Logf("left to a guest: %s", row.Name)
			continue
		}
		rows = append(rows, row)
	}
	if len(actions) != len(Rows) {
		t.Errorf("%d actions for %d rows", len(actions), len(Rows))
	}
	if t.Failed() {
		return
	}
	w := newWorld(t)
	results := w.play(t, rows)
	recorded := map[string]Measured{}
	for _, row := range rows {
		t.Run(strings.ReplaceAll(row.Name, " ", "-"), func(t *testing.T) {
			r := results[row.Name]
			if r.err != nil {
				t.Fatal(r.err)
			}
			t.Logf("%s after %v (row took %v on %s): %s", r.stage.outcome, r.stage.took.Round(time.Millisecond), r.ended.Sub(r.began).Round(time.Second), r.stage.Pod, r.stage.outcome.Words)
			if row.Ending == vacatedOrLost && r.stage.outcome.Kind == lost {
				return // the page says what becomes of most
			}
			recorded[row.Name] = Measured{Told: plain(r.stage.outcome), Took: took(r.stage.took)}
		})
	}
	if *record && !t.Failed() {
		if err := writeRecord(recorded); err != nil {
			t.Fatal(err)
		}
	}
}

// newWorld starts the execution points and what stands between them and the cluster.
func newWorld(t *testing.T) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{run: strconv.FormatInt(time.Now().UnixMilli(), 36)}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	w.pool, err = harness.Open(ctx)
	must(err)
	w.cluster, err = w.pool.Cluster()
	must(err)
	w.probe, err = w.pool.Probe(ctx)
	must(err)
	w.good, err = NewRegistry("127.0.0.1", false)
	must(err)
	t.Cleanup(func() { _ = w.good.Close() })
	w.secure, err = NewRegistry(w.cluster.NodeIP, true)
	must(err)
	t.Cleanup(func() { _ = w.secure.Close() })
	w.foreign, err = w.pool.Kubectl(ctx, nil, "-n", harness.Namespace, "create", "token", "default")
	must(err)
	w.foreign = strings.TrimSpace(w.foreign)
	w.proxy, err = NewProxy(w.cluster.Server, w.cluster.Keys)
	must(err)
	t.Cleanup(func() { _ = w.proxy.Close() })
	undo, err := w.admissionControl(ctx)
	must(err)
	t.Cleanup(undo)
	t.Cleanup(func() {
		if err := w.pool.Up(context.Background()); err != nil {
			t.Errorf("removing the execution points that fail: %v", err)
		}
	})
	must(w.executionPoints(ctx, *places))
	return w
}

// executionPoints makes so many of them, with more options of `pool up`.
func (w *world) executionPoints(ctx context.Context, n int, more ...string) error {
	return w.pool.Up(ctx, append([]string{"--faults", strconv.Itoa(n), "--faults-api", strconv.Itoa(w.proxy.Port())}, more...)...)
}

// play hands the rows out to execution points: first those that need a new pod, last those that leave none, and those
// that must be alone when all others are done. Those about the node follow, each with one execution point, made anew.
func (w *world) play(t *testing.T, rows []Row) map[string]*result {
	t.Helper()
	var first, common, last, alone, node []Row
	for _, row := range rows {
		switch a := actions[row.Name]; {
		case row.Guest:
			node = append(node, row)
		case a.alone:
			alone = append(alone, row)
		case a.first:
			first = append(first, row)
		case a.last:
			last = append(last, row)
		default:
			common = append(common, row)
		}
	}
	if len(last) >= *places || len(first) > *places {
		t.Fatalf("%d execution points are too few for %d rows that leave none", *places, len(last))
	}
	// The slow ones first.
	slices.SortStableFunc(common, func(a, b Row) int { return weight(b) - weight(a) })
	queue := make(chan Row, len(rows))
	for _, row := range slices.Concat(common) {
		queue <- row
	}
	close(queue)
	results := map[string]*result{}
	var mu sync.Mutex
	run := func(n int, row Row) {
		r := w.playOne(t.Context(), n, row)
		mu.Lock()
		defer mu.Unlock()
		results[row.Name] = r
	}
	var all sync.WaitGroup
	for n := 1; n <= *places; n++ {
		all.Go(func() {
			if n <= len(first) {
				run(n, first[n-1])
			}
			for row := range queue {
				run(n, row)
			}
		})
	}
	all.Wait()
	for _, row := range alone {
		run(*places, row)
	}
	for i, row := range last {
		all.Go(func() { run(i+1, row) })
	}
	all.Wait()
	for _, row := range node {
		if err := w.executionPoints(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		run(1, row)
	}
	return results
}

// weight is higher for rows that take long.
func weight(row Row) int {
	switch {
	case row.Name == "wrapper silent", strings.HasPrefix(row.Name, "volume of the image"):
		return 3
	case row.Class == Again, row.Name == "wrapper crashes", row.Ending == heldForImage:
		return 2
	}
	return 1
}

func (w *world) playOne(ctx context.Context, n int, row Row) *result {
	s := &stage{world: w, Fault: w.pool.Fault(n), row: row}
	r := &result{stage: s, began: time.Now()}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w.proxy.Set(s.Pod, Rule{})
	defer func() {
		s.over()
		r.ended = time.Now()
	}()
	a := actions[row.Name]
	r.err = func() error {
		var err error
		if s.namespace, err = s.Namespace(ctx); err != nil {
			return err
		}
		if err := a.do(ctx, s); err != nil {
			return fmt.Errorf("making the failure: %w\n%s", err, s.describe())
		}
		if err := s.await(ctx); err != nil {
			return fmt.Errorf("waiting for the job's outcome: %w\n%s", err, s.describe())
		}
		var after error
		if a.after != nil {
			after = a.after(ctx, s)
		}
		if err := errors.Join(s.check(), after); err != nil {
			return err
		}
		return s.follow(ctx, a)
	}()
	return r
}

// TestMain makes sure that flags are known before anything else.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}
