package job

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadLines(t *testing.T) {
	tests := map[string]struct {
		text, want string
		bad        bool
	}{
		"attributes":       {text: "A = 1\n\n# a comment\nB = \"x\"\r\n", want: "A = 1\nB = \"x\"\n"},
		"the last counts":  {text: "A = 1\nA = 2\n", want: "A = 2\n"},
		"one not readable": {text: "A = 1\nB = (\nC = 3", want: "A = 1\nC = 3\n"},
		"nothing":          {text: "", bad: true},
		"nothing readable": {text: "(\n", bad: true},
		"a line without end": {
			text: "A = \"" + strings.Repeat("x", maxLine) + "\"", bad: true},
		"too much": {text: strings.Repeat("A = 1\n", maxLines/6+2), bad: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ad, err := ReadLines(strings.NewReader(tt.text), slog.New(slog.DiscardHandler))
			if (err != nil) != tt.bad {
				t.Fatalf("got %v", err)
			}
			if tt.bad {
				return
			}
			if diff := cmp.Diff(tt.want, ad.FormatSorted()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
