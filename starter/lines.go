package main

import "strings"

// lines are the errors in err, one a line: several at once are told one after
// the other, without the frame that lists of errors print around themselves.
func lines(err error) []string {
	var kept []string
	for _, line := range strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(strings.TrimLeft(line, "\t *"))
		if line != "" && !strings.HasSuffix(line, "occurred:") {
			kept = append(kept, line)
		}
	}
	return kept
}

// oneLine is an error on one line, as a log or an ad has it.
func oneLine(err error) string { return strings.Join(lines(err), "; ") }
