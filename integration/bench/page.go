package main

import (
	"fmt"
	"os"
	"strings"
)

// The text between these lines of a page is generated.
const (
	pageBegin = "<!-- measured: written by `make bench` -->\n"
	pageEnd   = "<!-- end of what was measured -->\n"
)

// writePage puts the tables into the page.
func writePage(path, tables string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page, err := replaceMeasured(string(text), tables)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(page), 0o644)
}

func replaceMeasured(page, tables string) (string, error) {
	before, rest, found := strings.Cut(page, pageBegin)
	_, after, ends := strings.Cut(rest, pageEnd)
	if !found || !ends {
		return "", fmt.Errorf("the lines %q and %q that enclose the tables are missing", strings.TrimSpace(pageBegin), strings.TrimSpace(pageEnd))
	}
	return before + pageBegin + "\n" + tables + "\n" + pageEnd + after, nil
}
