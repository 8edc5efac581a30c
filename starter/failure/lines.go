package failure

import "strings"

// Lines are the errors in err, one per line, without the header and the bullets
// that lists of errors print.
func Lines(err error) []string {
	var kept []string
	for _, line := range strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(strings.TrimLeft(line, "\t *"))
		if line != "" && !strings.HasSuffix(line, "occurred:") {
			kept = append(kept, line)
		}
	}
	return kept
}

// OneLine is an error on one line, as a log or an ad has it.
func OneLine(err error) string { return strings.Join(Lines(err), "; ") }
