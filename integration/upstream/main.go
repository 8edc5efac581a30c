package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-multierror"
	"golang.org/x/sync/errgroup"

	"podstarter/integration/pool/upstreamroot"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

// options are those of the command line.
type options struct {
	source, record, starter, kept string
	test                          *regexp.Regexp
	sides, users                  []string
	limit                         time.Duration
	parallel                      int
	add, missing, idle            bool
}

func parse() (options, error) {
	var o options
	flag.StringVar(&o.source, "source", "", "`directory` with HTCondor's source: that above src/")
	flag.StringVar(&o.record, "record", "upstream/record.json", "`file` of the results")
	flag.StringVar(&o.starter, "starter", "../bin/condor_pod_starter", "our starter, as `make build` makes it")
	flag.StringVar(&o.kept, "kept", "", "`directory` for output and logs of tests; without it, a temporary one of which the output says the name")
	flag.DurationVar(&o.limit, "limit", 10*time.Minute, "how long one file of tests may run")
	flag.IntVar(&o.parallel, "parallel", 1, "how many files of tests run at once; they are sensitive to slow machines")
	flag.BoolVar(&o.add, "add", false, "add to earlier results of the same tests: shows which of them fail at times")
	flag.BoolVar(&o.missing, "missing", false, "run only tests that the record does not have, to go on with a run that was ended")
	flag.BoolVar(&o.idle, "idle", true, "use only processor time that nobody else wants")
	test := flag.String("test", "", "`regexp` that names of tests must match; without it, all")
	sides := flag.String("side", "stock,ours", "starters")
	users := flag.String("daemons", "", "whose the daemons are: user, sudo or root, or several with a comma between; without it, those that choice.go names for each test")
	flag.Parse()
	if o.source == "" || flag.NArg() != 0 {
		return options{}, errors.New("give -source DIR, the directory above src/ of HTCondor " + upstreamroot.Release)
	}
	var err error
	if o.test, err = regexp.Compile(*test); err != nil {
		return options{}, fmt.Errorf("-test: %w", err)
	}
	o.sides = strings.Split(*sides, ",")
	if *users != "" {
		o.users = strings.Split(*users, ",")
	}
	for _, side := range o.sides {
		if side != stock && side != ours {
			return options{}, fmt.Errorf("-side %s: it is %s or %s", side, stock, ours)
		}
	}
	for _, user := range o.users {
		if user != asUser && user != asSudo && user != asRoot {
			return options{}, fmt.Errorf("-daemons %s: it is %s, %s or %s", user, asUser, asSudo, asRoot)
		}
	}
	return o, nil
}

func run(ctx context.Context) error {
	o, err := parse()
	if err != nil {
		return err
	}
	if o.kept == "" {
		if o.kept, err = os.MkdirTemp("", "upstream"); err != nil {
			return fmt.Errorf("make a directory for output of tests: %w", err)
		}
	}
	for _, path := range []*string{&o.source, &o.starter, &o.kept} {
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("find %s: %w", *path, err)
		}
	}
	names, err := testsIn(o.source)
	if err != nil {
		return err
	}
	root, err := upstreamroot.Make(ctx, os.Stderr)
	if err != nil {
		return err
	}
	rec, err := load(o.record)
	if err != nil {
		return err
	}
	rec.Release, rec.Tests = upstreamroot.Release, names
	fmt.Println("output and logs of tests:", o.kept)
	return all(ctx, o, root, rec)
}

// all runs what was chosen and keeps the record after each test, so that a run that was ended is not lost.
func all(ctx context.Context, o options, root string, rec *Record) error {
	results := make(chan result)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(o.parallel)
	go func() {
		for _, t := range chosen(o, rec) {
			g.Go(func() error {
				if gctx.Err() != nil {
					return nil
				}
				r, err := runTest(gctx, o, root, t)
				if err != nil {
					return fmt.Errorf("%s: %w", t, err)
				}
				if gctx.Err() == nil {
					results <- r
				}
				return nil
			})
		}
		_ = g.Wait()
		close(results)
	}()
	var failed error
	for r := range results {
		fmt.Printf("%-60s %s (%d s)\n", r.test, r.outcome.summary(), r.outcome.Seconds)
		rec.put(r, o.add)
		if err := rec.save(o.record); err != nil {
			failed = multierror.Append(failed, err)
		}
	}
	if err := g.Wait(); err != nil {
		failed = multierror.Append(failed, err)
	}
	if err := ctx.Err(); err != nil {
		failed = multierror.Append(failed, err)
	}
	return failed
}

// A test is one file of tests under one starter.
type test struct{ name, side, user string }

func (t test) String() string { return t.name + " " + t.side + " " + t.user }

// chosen are the tests to run, with both starters one after the other.
func chosen(o options, rec *Record) []test {
	var tests []test
	for _, name := range rec.Tests {
		if !o.test.MatchString(name) || excluded(name) != "" {
			continue
		}
		users := o.users
		if users == nil {
			users = daemonsOf(name)
		}
		for _, user := range users {
			for _, side := range o.sides {
				if _, ok := rec.Outcomes[name][user][side]; !ok || !o.missing {
					tests = append(tests, test{name, side, user})
				}
			}
		}
	}
	return tests
}

// registered are the tests that HTCondor's build knows (CMakeLists.txt in src/condor_tests).
var registered = regexp.MustCompile(`(?m)^[ \t]*condor_pl_test ?\( ?([\w-]+) `)

// testsIn are the names of the files of tests in HTCondor's source: those in Python without .py, and those in Perl that its build
// knows with .run.
func testsIn(source string) ([]string, error) {
	dir := filepath.Join(source, "src", "condor_tests")
	paths, err := filepath.Glob(filepath.Join(dir, "test_*.py"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("%s has no test_*.py: %w; give the directory above src/ of HTCondor's source", dir, os.ErrNotExist)
	}
	var names []string
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".py"))
	}
	build, err := os.ReadFile(filepath.Join(dir, "CMakeLists.txt"))
	if err != nil {
		return nil, fmt.Errorf("read which tests HTCondor's build knows: %w", err)
	}
	for _, m := range registered.FindAllStringSubmatch(string(build), -1) {
		name := m[1] + ".run"
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
