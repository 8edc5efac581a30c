package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	verbose := flag.Bool("v", false, "print the output of the tests that failed")
	all := flag.Bool("all", false, "run all tests of each package, not only those that the table names")
	limit := flag.Duration("limit", 3*time.Minute, "how long the tests of one mutant may take")
	of := flag.String("area", "", "only the mutants of this area: wrapper, sandbox, starter, activation, condor, spares or report")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c := campaign{ctx: ctx, limit: *limit, all: *all, verbose: *verbose, sound: map[tests]error{}}
	good, err := c.run(*of, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if !good || err != nil {
		os.Exit(1)
	}
}

// campaign is one run of the command.
type campaign struct {
	workshop
	ctx          context.Context
	limit        time.Duration
	all, verbose bool
	sound        map[tests]error // results of the tests without a mistake
}

// run tries the requested mutants, and tells whether all were killed.
func (c *campaign) run(of string, names []string) (good bool, err error) {
	picked, err := pick(of, names)
	if err != nil {
		return false, err
	}
	if c.root, err = top(); err != nil {
		return false, err
	}
	if c.dir, err = os.MkdirTemp("", "mutants"); err != nil {
		return false, err
	}
	defer os.RemoveAll(c.dir)
	if err := os.Chmod(c.dir, 0o755); err != nil {
		return false, err
	}
	if err := adopt(); err != nil {
		return false, err
	}
	count := map[string]int{}
	for _, m := range picked {
		word, detail := c.try(m)
		if c.ctx.Err() != nil {
			return false, c.ctx.Err()
		}
		count[word]++
		fmt.Printf("%-16s %s  %s\n", word, m.Name, detail)
	}
	fmt.Printf("%d mutants:", len(picked))
	for _, word := range []string{killed, survived, hangs, badRow, badTests} {
		fmt.Printf(" %d %s", count[word], word)
		if word != badTests {
			fmt.Print(",")
		}
	}
	fmt.Println()
	return count[killed] == len(picked), nil
}

// Outcomes of a mutant. The command fails unless all are killed.
const (
	killed   = "killed"
	survived = "SURVIVED"
	// hangs: a test that only the time limit ends does not show what is wrong; a slow
	// machine could look the same.
	hangs    = "DID NOT END"
	badRow   = "ERROR OF TABLE"
	badTests = "TESTS FAIL"
)

// try runs the tests on one mutant.
func (c *campaign) try(m mutant) (word, detail string) {
	overlay, err := c.overlay(m)
	if err != nil {
		return badRow, err.Error()
	}
	late := false
	for _, of := range m.Tests {
		if c.all {
			of.Run = ""
		}
		if err := c.check(of); err != nil {
			return badTests, "also without the mistake: " + err.Error()
		}
		program, err := c.build(c.ctx, of.Package, overlay)
		if errors.Is(err, errNotCompile) {
			return badRow, err.Error()
		}
		if err != nil {
			return badTests, err.Error()
		}
		r, err := c.workshop.run(c.ctx, program, of, c.limit)
		if err != nil {
			return badTests, err.Error()
		}
		if c.verbose && r.failed {
			fmt.Printf("%s\n%s\n", m.Name, r.output)
		}
		late = late || r.late
		if r.failed && !r.late {
			how := strings.Join(r.tests, ", ")
			if how == "" {
				how = "the test program crashed"
			}
			return killed, "by " + of.Package + ": " + how
		}
	}
	if late {
		return hangs, fmt.Sprintf("within %v", c.limit)
	}
	return survived, fmt.Sprintf("%s: no test of %v notices", m.File, m.Tests)
}

// check runs tests once without a mistake: a test that always fails would kill every
// mutant.
func (c *campaign) check(of tests) error {
	err, done := c.sound[of]
	if !done {
		if err = c.passes(of); err != nil {
			c.sound[of] = fmt.Errorf("%s fails, as reported above", of.Package)
			return err
		}
		c.sound[of] = nil
	}
	return err
}

func (c *campaign) passes(of tests) error {
	program, err := c.build(c.ctx, of.Package, "")
	if err != nil {
		return err
	}
	r, err := c.workshop.run(c.ctx, program, of, c.limit)
	if err == nil && r.failed {
		err = fmt.Errorf("%s fails\n%s", of.Package, r.output)
	}
	return err
}
