// Command stocknames lists the configuration knobs and job attributes that HTCondor's starter reads, from HTCondor's source, and
// compares two such lists. Lists of releases are in releases/; verdicts.go says what this starter does about each name, and package
// shown what shows that it is so.
//
//	go -C integration run ./stocknames -source DIR -release 25.14.0   # writes stocknames/releases/25.14.0.txt
//	go -C integration run ./stocknames -diff 23.9.6 25.14.0
//	go -C integration run ./stocknames -misspell 'UPDATE|^Exit'       # do the tests notice that name such names?
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

	"podstarter/integration/stocknames/cppnames"
	"podstarter/integration/stocknames/shown"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "stocknames:", err)
		os.Exit(1)
	}
}

// record writes the list of a release, and of the newest that of condor_submit's commands; it says on standard error what the first may lack.
func record(source, into, release string) error {
	sources, err := sourcesIn(source)
	if err != nil {
		return err
	}
	defaults, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(table)))
	if err != nil {
		return fmt.Errorf("read HTCondor's table of knobs: %w", err)
	}
	names := cppnames.Find(sources, readsJob)
	for _, line := range unseen(sources, string(defaults), names) {
		fmt.Fprintln(os.Stderr, "not seen to be read, although it is a knob: "+line)
	}
	if err := writeRelease(into, release, names); err != nil {
		return err
	}
	all, err := readReleases(into)
	if err != nil || newestFirst(all)[0] != release {
		return err
	}
	return writeCommands(source, filepath.Join(filepath.Dir(into), commandsFile), release)
}

func run() error {
	source := flag.String("source", "", "`directory` with HTCondor's source: that above src/")
	release := flag.String("release", "", "release that it is of, such as 25.14.0")
	diff := flag.Bool("diff", false, "print what the second of two recorded releases has and the first does not, and the other way round")
	into := flag.String("releases", "stocknames/releases", "`directory` of the lists")
	wrong := flag.String("misspell", "", "misspell each name that matches this `pattern` and that no conformance case shows, and run the tests that name it")
	flag.Parse()
	switch {
	case *wrong != "" && flag.NArg() == 0:
		which, err := regexp.Compile(*wrong)
		if err != nil {
			return fmt.Errorf("read the pattern of -misspell: %w", err)
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		dir := filepath.Dir(*into)
		rows, err := rowsIn(dir, "..")
		if err != nil {
			return err
		}
		return misspell(ctx, "..", rows, which, os.Stdout)
	case *diff && flag.NArg() == 2:
		from, err := readRelease(*into, flag.Arg(0))
		if err != nil {
			return err
		}
		to, err := readRelease(*into, flag.Arg(1))
		if err != nil {
			return err
		}
		fmt.Print(difference(from, to))
		return nil
	case *source != "" && *release != "" && flag.NArg() == 0:
		return record(*source, *into, *release)
	}
	return errors.New("give -source DIR and -release VERSION, -diff VERSION VERSION, or -misspell PATTERN")
}

// rowsIn are the names with what shows their verdicts, by the lists in the directory.
func rowsIn(dir, repository string) ([]shown.Row, error) {
	releases, err := readReleases(filepath.Join(dir, "releases"))
	if err != nil {
		return nil, err
	}
	tables, err := readTables(filepath.Join(dir, "verdicts"))
	if err != nil {
		return nil, err
	}
	all, err := judge(releases, tables)
	if err != nil {
		return nil, err
	}
	return shownRows(dir, repository, all)
}
