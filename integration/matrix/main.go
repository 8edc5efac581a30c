// Matrix runs chosen tests on clusters of several kinds, one after the other: rows.go has them. What came of each is written
// to record.json as soon as it is known, from which docs/admin/support.md is written.
//
// Rows that have a record are not run, so that an interrupted run goes on where it ended; -again runs them all. Arguments
// choose rows by what their names begin with, as in `matrix 1.37`. The logs of a row that failed are below
// integration/.state-matrix-logs; with -keep its pool stays, too, until the next row. The exit code is 0 if every row that
// was run passed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	again := flag.Bool("again", false, "run the rows that have a record, too")
	keep := flag.Bool("keep", false, "leave the pool of a row that failed, in integration/.state-matrix, for a look at it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // the second signal ends this program at once
	passed, err := run(ctx, *again, *keep, flag.Args())
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	case !passed:
		os.Exit(1)
	}
}

func run(ctx context.Context, again, keep bool, names []string) (bool, error) {
	root, err := os.Getwd()
	if err != nil {
		return false, fmt.Errorf("finding the project's directory: %w", err)
	}
	if _, err := os.Stat(filepath.Join(root, recordPath)); err != nil {
		return false, fmt.Errorf("looking for the record: %w; run this in the project's directory", err)
	}
	record, err := readRecord(filepath.Join(root, recordPath))
	if err != nil {
		return false, err
	}
	todo := choose(Rows, record, again, names)
	if len(todo) == 0 {
		fmt.Println("Nothing to run: all these rows have a record; -again runs them.")
	}
	rows := runner{root: root, keep: keep, out: os.Stdout}
	// Once: the record itself changes with each row.
	source, err := rows.source(ctx)
	if err != nil {
		return false, err
	}
	passed := true
	for i, row := range todo {
		fmt.Printf("%s row %d of %d: %s\n", time.Now().Format(time.TimeOnly), i+1, len(todo), row.Name())
		result, err := rows.row(ctx, row)
		if err != nil {
			return false, fmt.Errorf("%s: %w; it has no record of this run", row.Name(), err)
		}
		result.Source = source
		record[row.Name()] = result
		if err := record.write(filepath.Join(root, recordPath)); err != nil {
			return false, err
		}
		fmt.Printf("%s %s: %s\n", time.Now().Format(time.TimeOnly), row.Name(), result.outcome(row))
		passed = passed && result.passed(row)
	}
	return passed, nil
}

// choose are the rows to run: those that the names begin, and that have no record. A pool that did not come up is tried again.
func choose(rows []Row, record Record, again bool, names []string) []Row {
	var todo []Row
	for _, row := range rows {
		named := len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(row.Name(), name) })
		old, known := record[row.Name()]
		if named && (again || !known || old.Down != "") {
			todo = append(todo, row)
		}
	}
	return todo
}
