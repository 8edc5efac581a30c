package main

import "strings"

// oneLine is an error on one line, as a log or an ad has it; several errors at
// once are told one after the other.
func oneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	var kept []string
	for _, line := range lines {
		line = strings.TrimSpace(strings.TrimLeft(line, "\t *"))
		if line != "" && !strings.HasSuffix(line, "occurred:") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "; ")
}
