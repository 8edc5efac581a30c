package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"podstarter/integration/conformance"
	"podstarter/integration/stocknames/cppnames"
	"podstarter/integration/stocknames/shown"
)

// commandsFile is the list of condor_submit's commands, bookFile what is said by hand of what shows verdicts.
const (
	commandsFile = "commands.txt"
	bookFile     = "shown.json"
)

const (
	// mostUnshown bounds the names that nothing shows, mostOurs those that only tests without the stock starter show. They may only become less.
	mostUnshown, mostOurs = 0, 10
	// leastByCases are the names that conformance cases show, of all that are read. It may only become more.
	leastByCases = 376
)

// toShow are the names with a verdict of their own that says what this starter does with them.
func toShow(all []Judged) []shown.Name {
	var names []shown.Name
	for _, j := range all {
		if j.Kind != cppnames.Unknown && len(j.Entry.Names) > 0 && slices.Contains([]Verdict{AsStock, Differently, Refused}, j.Entry.Verdict) {
			names = append(names, shown.Name{Kind: j.Kind, Text: j.Text})
		}
	}
	return names
}

// shownRows are these names with what shows their verdicts.
func shownRows(dir, repository string, all []Judged) ([]shown.Row, error) {
	text, err := os.ReadFile(filepath.Join(dir, commandsFile))
	if err != nil {
		return nil, fmt.Errorf("read condor_submit's commands: %w; make the list with -source", err)
	}
	commands, err := shown.ParseCommands(string(text))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", commandsFile, err)
	}
	book, err := shown.ReadBook(filepath.Join(dir, bookFile))
	if err != nil {
		return nil, err
	}
	tests, err := shown.Tests(repository)
	if err != nil {
		return nil, err
	}
	names := toShow(all)
	reported, err := shown.Reported(filepath.Join(repository, "testdata", "streams", "25.14"), names)
	if err != nil {
		return nil, err
	}
	return shown.Finder{Subjects: conformance.Subjects(), Commands: commands, Reported: reported, Tests: tests, Book: book}.Rows(names)
}

// writeCommands writes the list of commands.
func writeCommands(source, to, release string) error {
	var text strings.Builder
	for _, name := range shown.CommandSources {
		part, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(name)))
		if err != nil {
			return fmt.Errorf("read condor_submit's source: %w", err)
		}
		text.Write(part)
		text.WriteString("\n")
	}
	if err := os.WriteFile(to, []byte(shown.FindCommands(text.String()).Format(release)), 0o644); err != nil {
		return fmt.Errorf("write the list of commands: %w; run this in the folder integration", err)
	}
	return nil
}
