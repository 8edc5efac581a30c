package main

import (
	"fmt"
	"io"
	"os"
)

// inTurn is the variable with the file for what runs in turn.
const inTurn = "PODSTARTER_IN_TURN"

// A noted is something that the suites write to a file while they run, and that the end
// of the run shows: the Go command hides the output of tests that pass.
type noted struct {
	variable    string // of the environment, with the file's name
	none, title string // printed instead, and before it
	file        *os.File
}

// newNotes makes the files, and puts their names into the environment.
func newNotes() ([]*noted, error) {
	all := []*noted{
		{variable: inTurn, none: "Nothing runs in turn here.", title: "In turn, not each time:"},
		{variable: "PODSTARTER_FIRST_FAILURES",
			none: "No case was tried again.", title: "Failed at first, and passed when tried again:"},
	}
	for _, n := range all {
		var err error
		if n.file, err = os.CreateTemp("", "run-tests"); err != nil {
			return nil, fmt.Errorf("making the file for %s: %w", n.variable, err)
		}
		if err := os.Setenv(n.variable, n.file.Name()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// print prints what was noted.
func (n *noted) print(to io.Writer) error {
	text, err := io.ReadAll(n.file)
	switch {
	case err != nil:
		return fmt.Errorf("reading the file of %s: %w", n.variable, err)
	case len(text) == 0:
		fmt.Fprintln(to, n.none)
	default:
		fmt.Fprintf(to, "%s\n%s", n.title, text)
	}
	return nil
}

// remove removes the file.
func (n *noted) remove() {
	n.file.Close()
	os.Remove(n.file.Name())
}
