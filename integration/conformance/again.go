package conformance

import (
	"fmt"
	"os"
	"strings"
)

// FirstFailures is the environment variable with the file for cases that failed
// and passed at the second try. The Go command hides the output of a test that
// passes; integration/run-tests prints the file at its end.
const FirstFailures = "PODSTARTER_FIRST_FAILURES"

// noteFirst appends to the file, if there is one, what failed at first, and why.
// Several processes may write at a time.
func noteFirst(path, where, name string, wrong []string) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("noting that %s failed at first: %w", name, err)
	}
	text := fmt.Sprintf("conformance %s, HTCondor %s\n", name, where)
	for _, w := range wrong {
		text += "    " + strings.ReplaceAll(strings.TrimSpace(w), "\n", "\n    ") + "\n"
	}
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("noting that %s failed at first: %w", name, err)
	}
	return nil
}
