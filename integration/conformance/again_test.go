package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNoteFirst(t *testing.T) {
	if err := noteFirst("", "25.14+25.14", "plain", []string{"x"}); err != nil {
		t.Errorf("without a file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "first")
	for _, name := range []string{"plain", "held"} {
		if err := noteFirst(path, "25.14+23.9", name, []string{"one line", "two\nlines\n"}); err != nil {
			t.Fatal(err)
		}
	}
	const each = ", HTCondor 25.14+23.9\n    one line\n    two\n    lines\n"
	text, err := os.ReadFile(path)
	if diff := cmp.Diff("conformance plain"+each+"conformance held"+each, string(text)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err := noteFirst(filepath.Join(path, "below"), "25.14+25.14", "plain", nil); err == nil {
		t.Error("want an error for a file that cannot be written")
	}
}
