package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"podstarter/integration/stocknames/cppnames"
)

// A list has a line for each name: what it is of, the name, the files that read it, with `windows` before
// them if only Windows compiles that code. Columns are separated by tabs, files by spaces.

const windowsMark = "windows"

func formatRelease(release string, names []cppnames.Name) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Names that the starter of HTCondor %s and its libraries read, and the files below src/ that do.\n"+
		"# Written by: go -C integration run ./stocknames -source DIR -release %[1]s\n", release)
	for _, n := range names {
		files := n.Files
		if n.Windows {
			files = append([]string{windowsMark}, files...)
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\n", n.Kind, n.Text, strings.Join(files, " "))
	}
	return b.String()
}

func parseRelease(name, text string) ([]cppnames.Name, error) {
	var all []cppnames.Name
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, "\t")
		if len(parts) != 3 || parts[2] == "" {
			return nil, fmt.Errorf("%s:%d: %q is not KIND, NAME and FILES, separated by tabs; write the list anew with -source", name, i+1, line)
		}
		n := cppnames.Name{Kind: cppnames.Kind(parts[0]), Text: parts[1], Files: strings.Split(parts[2], " ")}
		if n.Files[0] == windowsMark {
			n.Windows, n.Files = true, n.Files[1:]
		}
		all = append(all, n)
	}
	return all, nil
}

func writeRelease(dir, release string, names []cppnames.Name) error {
	if err := os.WriteFile(filepath.Join(dir, release+".txt"), []byte(formatRelease(release, names)), 0o644); err != nil {
		return fmt.Errorf("write the list of %s: %w; run this in the folder integration, or give -releases", release, err)
	}
	return nil
}

func readRelease(dir, release string) ([]cppnames.Name, error) {
	path := filepath.Join(dir, release+".txt")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the list of %s: %w; make it with -source", release, err)
	}
	return parseRelease(path, string(text))
}

// difference says what one release reads and the other does not.
func difference(from, to []cppnames.Name) string {
	var b strings.Builder
	only := func(title string, in, other []cppnames.Name) {
		var lines []string
		for _, n := range in {
			if n.Kind != cppnames.Unknown && !slices.ContainsFunc(other, func(o cppnames.Name) bool { return o.Kind == n.Kind && o.Text == n.Text }) {
				lines = append(lines, fmt.Sprintf("  %s %s (%s)\n", n.Kind, n.Text, strings.Join(n.Files, ", ")))
			}
		}
		fmt.Fprintf(&b, "%s: %d\n%s", title, len(lines), strings.Join(lines, ""))
	}
	only("new", to, from)
	only("gone", from, to)
	return b.String()
}

// newestFirst are the releases' versions, the newest first.
func newestFirst(releases map[string][]cppnames.Name) []string {
	return slices.SortedFunc(maps.Keys(releases), func(a, b string) int { return slices.Compare(version(b), version(a)) })
}

func version(s string) []int {
	var v []int
	for _, part := range strings.Split(s, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = -1
		}
		v = append(v, n)
	}
	return v
}

// readReleases reads all lists of a directory.
func readReleases(dir string) (map[string][]cppnames.Name, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, fmt.Errorf("list the releases in %s: %w", dir, err)
	}
	all := map[string][]cppnames.Name{}
	for _, p := range paths {
		release := strings.TrimSuffix(filepath.Base(p), ".txt")
		if all[release], err = readRelease(dir, release); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no lists of releases (*.txt); make one with -source", dir)
	}
	return all, nil
}
