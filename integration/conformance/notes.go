package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/turn"
)

// FirstFailures is the environment variable with the file for cases that failed
// and passed at the second try. The Go command hides the output of a test that
// passes; integration/run-tests prints the file at its end.
const FirstFailures = "PODSTARTER_FIRST_FAILURES"

// InTurn is the environment variable with the file for the cases that a run has
// because it is their turn, and those that it leaves out. integration/run-tests
// prints it too.
const InTurn = "PODSTARTER_IN_TURN"

// noteFirst appends to the file, if there is one, what failed at first, and why.
func noteFirst(path, where, name string, wrong []string) error {
	text := fmt.Sprintf("conformance %s, HTCondor %s\n", name, where)
	for _, w := range wrong {
		text += "    " + strings.ReplaceAll(strings.TrimSpace(w), "\n", "\n    ") + "\n"
	}
	return note(path, text)
}

// noteTurn appends to the file, if there is one, which cases run in turn.
func noteTurn(path, where string, t turn.Turn, p Picked) error {
	text := fmt.Sprintf("conformance, HTCondor %s, turn %s: %d ran", where, t, len(p.InTurn))
	if len(p.InTurn) > 0 {
		text += " (" + strings.Join(p.InTurn, ", ") + ")"
	}
	text += fmt.Sprintf("; %d did not", len(p.Left))
	if len(p.Beside) > 0 {
		text += fmt.Sprintf("; nor did %d for which this pool has no Docker or Apptainer", len(p.Beside))
	}
	return note(path, text+"\n")
}

// noteFound appends to the file, if there is one, each difference and how long steps
// have waited, each as a line of JSON.
func noteFound(path string, k harness.Kind, c Case, found []Difference, stock, ours map[string]Waited) error {
	var text strings.Builder
	lines := json.NewEncoder(&text)
	for _, step := range slices.Sorted(maps.Keys(ours)) {
		if err := lines.Encode(struct {
			Pool, Case, Step   string
			About, Stock, Ours time.Duration
		}{k.String(), c.Name, step, ours[step].About, stock[step].Took, ours[step].Took}); err != nil {
			return err
		}
	}
	for _, d := range found {
		if err := lines.Encode(struct {
			Pool string
			Difference
		}{k.String(), d}); err != nil {
			return err
		}
	}
	return note(path, text.String())
}

// note appends text to a file, which several processes may do at a time. No path is
// no file.
func note(path, text string) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("noting %.40q: %w", text, err)
	}
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("noting %.40q: %w", text, err)
	}
	return nil
}
