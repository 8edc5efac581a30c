package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"podstarter/integration/stocknames/cppnames"
)

// table is HTCondor's table of knobs with their defaults, below the source's directory.
const table = "src/condor_utils/param_info.in"

var (
	entryOfTable = regexp.MustCompile(`(?m)^\[([A-Za-z][A-Za-z0-9_]*)\]`)
	// notKnobs are other things in the table that have a knob's form: macros that each configuration has, and daemons.
	notKnobs = []string{"CONDOR_VERSION", "DETECTED_CPUS", "DETECTED_CPUS_LIMIT", "DETECTED_PHYSICAL_CPUS", "FULL_HOSTNAME", "JOB_ROUTER", "PYTHON3_VERSION_MINOR", "SHARED_PORT"}
)

// unseen are the knobs of HTCondor's own table that are literals in the files, and of which the scanner saw no read: either it
// does not understand how they are read, or they are not. Knobs of one word are left out, since they are words of English.
func unseen(sources []cppnames.Source, tableText string, names []cppnames.Name) []string {
	known := map[string]bool{}
	for _, m := range entryOfTable.FindAllStringSubmatch(tableText, -1) {
		if name := strings.ToUpper(m[1]); strings.Contains(name, "_") && !slices.Contains(notKnobs, name) {
			known[name] = true
		}
	}
	var patterns []*regexp.Regexp
	for _, n := range names {
		if n.Kind != cppnames.Knob {
			continue
		}
		delete(known, strings.ToUpper(n.Text))
		if strings.ContainsAny(n.Text, "*<") && len(strings.Trim(n.Text, "*<>_")) > 4 {
			p := strings.NewReplacer(regexp.QuoteMeta("*"), ".+", "<SUBSYS>", ".+").Replace(regexp.QuoteMeta(n.Text))
			patterns = append(patterns, regexp.MustCompile("(?i)^"+p+"$"))
		}
	}
	var lines []string
	literals := cppnames.Literals(sources)
	for _, l := range slices.Sorted(maps.Keys(literals)) {
		if known[strings.ToUpper(l)] && !slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(l) }) {
			lines = append(lines, fmt.Sprintf("%s (%s)", l, strings.Join(literals[l], " ")))
		}
	}
	return lines
}
