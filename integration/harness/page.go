package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Example is the text of a page of docs/, such as admin/size.md, that is indented as an example and has a word. It is without the
// indentation. There must be one such example.
func (p *Pool) Example(page, word string) (string, error) {
	content, err := os.ReadFile(filepath.Join(p.Root, "docs", page))
	if err != nil {
		return "", fmt.Errorf("looking for an example with %q: %w", word, err)
	}
	var found []string
	for block := range strings.SplitSeq(string(content), "\n\n") {
		var lines strings.Builder
		for line := range strings.Lines(block) {
			if text, indented := strings.CutPrefix(line, "    "); indented {
				lines.WriteString(text)
			}
		}
		if strings.Contains(lines.String(), word) {
			found = append(found, lines.String())
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("docs/%s has %d examples with %q, want one", page, len(found), word)
	}
	return found[0], nil
}
