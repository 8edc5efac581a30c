package firstjob

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlocks(t *testing.T) {
	page := "text\n\n```sh\na\nb\n```\nmore `code`\n```sh access-point\nc\n```\n"
	got, err := blocks(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []block{{here, "a\nb\n"}, {accessPoint, "c\n"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(block{})); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	for _, wrong := range []string{"```yaml\na: b\n```\n", "```sh\na\n"} {
		if got, err := blocks(wrong); err == nil {
			t.Errorf("%q: %v", wrong, got)
		}
	}
}

func TestFilledIn(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		values     map[string]string
		want       string // empty for an error
	}{
		{"all", "A=1\nB_C=2\n", map[string]string{"A": "x", "B_C": "y"}, "A='x'\nB_C='y'\n"},
		{"one that the test does not know", "A=1\nB=2\n", map[string]string{"A": "x"}, ""},
		{"one that the page does not have", "A=1\n", map[string]string{"A": "x", "B": "y"}, ""},
	} {
		got, err := filledIn(tt.text, tt.values)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}
