package status

import (
	"strings"

	"podstarter/provisioner/explain"
)

// cut returns a text in one line with at most so many bytes, in which all characters
// print.
func cut(text string, most int) string {
	// A text that is very long is not read to its end.
	long := len(text) > 4*most
	if long {
		text = text[:4*most]
	}
	text = explain.Clean(strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "))
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	if long {
		return text + "…"
	}
	return text
}
