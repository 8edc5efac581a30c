package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of `go test -json`, as far as we look at it (go doc test2json).
type event struct{ Action, Test, Output string }

// maxEvent bounds a line in bytes: a test's output comes line by line.
const maxEvent = 1 << 20

// outcome reads what `go test -json` prints of one package. Lines that are no events, such as those of a build that failed, and the
// output of failed tests go to out.
func (s suite) outcome(in io.Reader, out io.Writer) (Outcome, error) {
	o := Outcome{Package: s.pkg}
	var began []string
	said := map[string]*strings.Builder{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(out, lines.Text())
			continue
		}
		test, _, inner := strings.Cut(e.Test, "/")
		switch {
		case e.Action == "build-output":
			fmt.Fprint(out, e.Output)
		case e.Action == "output":
			if said[test] == nil {
				said[test] = new(strings.Builder)
			}
			said[test].WriteString(e.Output)
		case inner:
		case e.Action == "run":
			began = append(began, test)
		case e.Action == "pass" && test != "":
			o.Passed = append(o.Passed, test)
			fmt.Fprintf(out, "  passed %s\n", test)
		case e.Action == "skip" && test != "":
			o.Skipped = append(o.Skipped, test)
			fmt.Fprintf(out, "  skipped %s\n", test)
		case e.Action == "fail":
			if test != "" {
				o.Failed = append(o.Failed, test)
			} else if len(o.Failed) == 0 {
				o.Failed = append(o.Failed, s.pkg)
			}
			if text := said[test]; text != nil && (test != "" || slices.Contains(o.Failed, s.pkg)) {
				fmt.Fprint(out, text)
			}
		}
	}
	for _, test := range began {
		if !slices.Contains(slices.Concat(o.Passed, o.Failed, o.Skipped), test) {
			o.Failed = append(o.Failed, test)
		}
	}
	if err := lines.Err(); err != nil {
		return o, fmt.Errorf("reading the tests' events: %w", err)
	}
	return o, nil
}
