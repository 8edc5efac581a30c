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

func TestNoteTurnAndFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes")
	if err := noteTurn(path, "25.14+25.14", 3, Picked{InTurn: []string{"a", "b"}, Left: []string{"c"}}); err != nil {
		t.Fatal(err)
	}
	if err := noteTurn(path, "25.14+25.14", 0, Picked{Left: []string{"c"}}); err != nil {
		t.Fatal(err)
	}
	if err := noteFound(path, Newest, Case{Name: "plain"}, []Difference{{Case: "plain", In: InHistory, Name: "A", Stock: "1", Ours: Absent}},
		map[string]Waited{"step 1": {Took: 1}}, map[string]Waited{"step 1": {Took: 2}}); err != nil {
		t.Fatal(err)
	}
	const want = "conformance, HTCondor 25.14+25.14, turn 3/7: 2 ran (a, b); 1 did not\n" +
		"conformance, HTCondor 25.14+25.14, turn none: 0 ran; 1 did not\n" +
		`{"Pool":"25.14+25.14","Case":"plain","Step":"step 1","About":0,"Stock":1,"Ours":2}` + "\n" +
		`{"Pool":"25.14+25.14","Case":"plain","Proc":0,"In":"history","Name":"A","Stock":"1","Ours":"-"}` + "\n"
	text, err := os.ReadFile(path)
	if diff := cmp.Diff(want, string(text)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
