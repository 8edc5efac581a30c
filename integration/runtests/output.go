package main

import (
	"io"
	"strings"
)

// lines is a command's output, which is passed on in whole lines: those of the other lane
// come between them, never into them.
type lines struct {
	to     io.Writer
	prefix string
	see    func(line string) // may be nil
	rest   string            // of a line that is not whole yet
}

// Write implements io.Writer.
func (l *lines) Write(text []byte) (int, error) {
	all := strings.SplitAfter(l.rest+string(text), "\n")
	l.rest = all[len(all)-1]
	for _, line := range all[:len(all)-1] {
		if l.see != nil {
			l.see(strings.TrimSuffix(line, "\n"))
		}
		if _, err := io.WriteString(l.to, l.prefix+line); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// flush writes a last line that has no end.
func (l *lines) flush() {
	if l.rest != "" {
		_, _ = l.Write([]byte("\n"))
	}
}

// Bounds of what is kept of a step's failed tests.
const (
	maxFailed = 40  // tests
	maxReason = 2   // lines of each
	maxLine   = 300 // bytes
)

// detail begins the lines that say more about the one above them.
const detail = "    "

// failedTests are the failed tests in the output of `go test`, each with the first words
// of its reason.
type failedTests struct {
	kept   []string
	tests  int
	reason int // lines of it that may follow
	depth  int // of the test that they belong to
}

// see looks at a line. Without -v the reason of a test comes behind its line, one step
// deeper.
func (f *failedTests) see(line string) {
	text := strings.TrimLeft(line, " ")
	depth := len(line) - len(text)
	switch {
	case strings.HasPrefix(text, "--- FAIL: ") || strings.HasPrefix(line, "panic: "):
		f.tests++
		f.reason, f.depth = maxReason, depth
	case f.reason > 0 && depth > f.depth && !strings.HasPrefix(text, "--- "):
		f.reason--
	default:
		f.reason = 0
		return
	}
	switch {
	case f.tests <= maxFailed:
		f.kept = append(f.kept, detail+line[:min(len(line), maxLine)])
	case len(f.kept) > 0 && f.kept[len(f.kept)-1] != detail+"and more":
		f.kept = append(f.kept, detail+"and more")
	}
}
