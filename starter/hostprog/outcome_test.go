package hostprog

import (
	"strings"
	"testing"
)

// TestExcerpt: of a long output the end is shown, where programs say what went wrong.
func TestExcerpt(t *testing.T) {
	long := strings.Repeat("line\n", 200)
	for output, want := range map[string]string{
		"":                       "",
		" \n short\n":            "short",
		"not \xff text":          "not ? text",
		long + "sorry\n":         "..." + (long + "sorry")[len(long)+len("sorry")-500:],
		long + "\xc3\xa4 sorry ": "..." + (long + "ä sorry")[len(long)+len("ä sorry")-500:],
	} {
		if got := Excerpt([]byte(output)); got != want {
			t.Errorf("%.20q...: %q, want %q", output, got, want)
		}
	}
}
