// Package measured writes what a command has measured into a page, between two lines that name the command.
package measured

import (
	"fmt"
	"os"
	"strings"
)

// end is the line behind the text.
const end = "<!-- end of what was measured -->\n"

// begin is the line before it.
func begin(command string) string { return "<!-- measured: written by `" + command + "` -->\n" }

// Write replaces what the command has written into the page before.
func Write(path, command, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := replace(string(page), command, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(changed), 0o644)
}

func replace(page, command, text string) (string, error) {
	before, rest, found := strings.Cut(page, begin(command))
	_, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		return "", fmt.Errorf("the lines %q and %q that enclose the text are missing", strings.TrimSpace(begin(command)), strings.TrimSpace(end))
	}
	return before + begin(command) + "\n" + text + "\n" + end + after, nil
}
