package language

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"podstarter/integration/harness"
)

//go:embed libclassad/main.cpp
var source string

// build makes the program with HTCondor's library, as a distribution would: -O2.
const build = `dir=$(mktemp -d) && cd "$dir" && cat >libclassad.cpp &&
g++ -std=c++20 -O2 -o libclassad libclassad.cpp -lclassad >&2 && cat libclassad; code=$?; rm -rf "$dir"; exit $code`

// where files of the comparison are, in the stock execution point's container.
const where = "/tmp/language"

// Results are the runs of both libraries.
type Results struct {
	theirs, ours []run
}

// Compare measures both in turns. The pool must have a stock execution point.
func Compare(ctx context.Context, pool *harness.Pool, rounds int) (*Results, error) {
	machines, err := machines(ctx, pool)
	if err != nil {
		return nil, err
	}
	jobs, err := jobs(ctx, pool)
	if err != nil {
		return nil, err
	}
	program, err := pool.Suite(ctx, strings.NewReader(source), "sh", "-c", build)
	if err != nil {
		return nil, fmt.Errorf("building a program with HTCondor's ClassAd library: %w", err)
	}
	defer func() { _, _ = pool.EP(context.WithoutCancel(ctx), harness.Stock, "rm", "-rf", where) }()
	for name, content := range map[string]string{"libclassad": program, "machines": machines, "jobs": jobs} {
		if err := put(ctx, pool, name, strings.NewReader(content)); err != nil {
			return nil, err
		}
	}
	r := &Results{}
	for range rounds {
		out, err := pool.EP(ctx, harness.Stock, where+"/libclassad", where+"/machines", where+"/jobs", "1")
		if err != nil {
			return nil, fmt.Errorf("running HTCondor's library: %w", err)
		}
		theirs, err := parseRuns(out)
		if err != nil {
			return nil, err
		}
		mine, err := ours(machines, jobs, 1)
		if err != nil {
			return nil, err
		}
		r.theirs, r.ours = append(r.theirs, theirs...), append(r.ours, mine...)
	}
	return r, r.agree()
}

func put(ctx context.Context, pool *harness.Pool, name string, content io.Reader) error {
	const script = `mkdir -p "$1" && cat >"$1/$2" && chmod 755 "$1/$2"`
	if _, err := pool.EPInput(ctx, harness.Stock, content, "sh", "-c", script, "put", where, name); err != nil {
		return fmt.Errorf("putting %s into the stock execution point: %w", name, err)
	}
	return nil
}

// agree returns an error if the libraries did not do the same.
func (r *Results) agree() error {
	for _, kind := range []string{parse, print, match} {
		theirs, ours := agreements(r.theirs, kind), agreements(r.ours, kind)
		if len(theirs) != 1 || !slices.Equal(theirs, ours) {
			return fmt.Errorf("the results of %s differ: %v with HTCondor's library, %v with ours", kind, theirs, ours)
		}
	}
	return nil
}

// agreements are all the results that runs of a kind had.
func agreements(runs []run, kind string) (all []int64) {
	for _, r := range runs {
		if r.kind == kind {
			all = append(all, r.agreed)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Tables are the results as text, in Markdown.
func (r *Results) Tables() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Each ad has %d attributes in the mean, and %d of %d pairs match.\n\n", agreements(r.ours, parse)[0]/number, agreements(r.ours, match)[0], number*number)
	b.WriteString("| µs | HTCondor's library | ours | HTCondor's / ours |\n|---|---|---|---|\n")
	for _, line := range []struct{ title, theirs, ours string }{
		{"read a machine's ad", parse, parse},
		{"the same with its cache of expressions", cached, parse},
		{"print a machine's ad", print, print},
		{"match a job and a machine", match, match},
	} {
		theirs, ours := median(r.theirs, line.theirs), median(r.ours, line.ours)
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.1f |\n", line.title, micro(theirs), micro(ours), float64(theirs)/float64(max(ours, 1)))
	}
	return b.String()
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// median is the time for one ad, or pair, in the middle one of the runs.
func median(runs []run, kind string) time.Duration {
	var each []time.Duration
	for _, r := range runs {
		if r.kind == kind && r.number > 0 {
			each = append(each, r.took/time.Duration(r.number))
		}
	}
	if len(each) == 0 {
		return 0
	}
	slices.Sort(each)
	return each[len(each)/2]
}
