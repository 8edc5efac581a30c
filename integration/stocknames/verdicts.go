package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"

	"podstarter/integration/stocknames/cppnames"
)

// Verdict is what this starter makes of a name.
type Verdict string

// The verdicts.
const (
	AsStock     Verdict = "as stock"
	Differently Verdict = "differently"
	Refused     Verdict = "refused"
	NoMeaning   Verdict = "no meaning here"
	Missing     Verdict = "missing"
)

var verdicts = []Verdict{AsStock, Differently, Refused, NoMeaning, Missing}

// Entry is a verdict on names that share it, or on all names that only some of the library's files read.
type Entry struct {
	Verdict Verdict `json:"verdict"`
	// Why is the reason, or what would have to be built; empty only for "as stock".
	Why string `json:"why,omitempty"`
	// Names are as the lists of releases have them.
	Names []string `json:"names,omitempty"`
	// Files are patterns of files below src/. A name that has no entry of its own gets the first entry with one of its files,
	// if each of its files is in some entry.
	Files []string `json:"files,omitempty"`
	// Found are literals of our code that build the names, where these are patterns or are put together.
	Found []string `json:"found,omitempty"`
	// Alike are names whose literal in our code means something else.
	Alike []string `json:"alike,omitempty"`
}

// Table has the verdicts on names of one kind.
type Table struct {
	Kind    cppnames.Kind `json:"kind"`
	Entries []Entry       `json:"entries"`
}

// ownCode says whether each name that the file reads needs a verdict of its own: the starter's code, and file transfer's.
func ownCode(file string) bool {
	return strings.HasPrefix(file, "condor_starter.V6.1/") || strings.HasPrefix(file, "condor_utils/file_transfer") || strings.HasPrefix(file, "condor_startd.V6/")
}

// readTables reads the verdicts of a directory.
func readTables(dir string) ([]Table, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list the verdicts in %s: %w", dir, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no verdicts (*.json)", dir)
	}
	var all []Table
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			return nil, fmt.Errorf("read verdicts: %w", err)
		}
		var t Table
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&t); err != nil {
			return nil, fmt.Errorf("read the verdicts of %s: %w", p, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// Judged is a name with its verdict.
type Judged struct {
	cppnames.Name
	Entry Entry
	// Releases are those that read it.
	Releases []string
}

// judge gives each name of the releases its verdict. The error has all names without one, all verdicts without a name, and
// what else is wrong with the tables.
func judge(releases map[string][]cppnames.Name, tables []Table) ([]Judged, error) {
	var problems *multierror.Error
	bad := func(format string, args ...any) { problems = multierror.Append(problems, fmt.Errorf(format, args...)) }
	own, groups := map[nameKey]Entry{}, map[cppnames.Kind][]Entry{}
	for _, t := range tables {
		for _, e := range t.Entries {
			checkEntry(t.Kind, e, bad)
			if len(e.Files) > 0 {
				groups[t.Kind] = append(groups[t.Kind], e)
			}
			for _, n := range e.Names {
				if _, twice := own[nameKey{t.Kind, n}]; twice {
					bad("%s %s has two verdicts", t.Kind, n)
				}
				own[nameKey{t.Kind, n}] = e
			}
		}
	}
	var all []Judged
	used, usedFiles := map[nameKey]bool{}, map[string]bool{}
	for _, n := range merged(releases) {
		k := nameKey{n.Kind, n.Text}
		e, ok := own[k]
		used[k] = true
		if !ok {
			e, ok = groupOf(n.Name, groups[n.Kind], usedFiles)
		}
		if !ok {
			bad("%s %s (%s) has no verdict", n.Kind, n.Text, strings.Join(n.Files, " "))
			continue
		}
		n.Entry = e
		all = append(all, n)
	}
	for k := range own {
		if !used[k] {
			bad("%s %s has a verdict, but no release reads it", k.kind, k.text)
		}
	}
	for kind, entries := range groups {
		for _, e := range entries {
			for _, f := range e.Files {
				if !usedFiles[f] {
					bad("%s: the pattern %s is of no file that needs it", kind, f)
				}
			}
		}
	}
	return all, problems.ErrorOrNil()
}

type nameKey struct {
	kind cppnames.Kind
	text string
}

func checkEntry(kind cppnames.Kind, e Entry, bad func(string, ...any)) {
	what := strings.Join(append(slices.Clone(e.Names), e.Files...), " ")
	switch {
	case !slices.Contains(verdicts, e.Verdict):
		bad("%s %s: %q is no verdict", kind, what, e.Verdict)
	case e.Why == "" && e.Verdict != AsStock:
		bad("%s %s: %q needs a reason (why)", kind, what, e.Verdict)
	case e.Verdict == AsStock && len(e.Files) > 0:
		bad("%s %s: names that work as under stock are listed one by one", kind, what)
	case (len(e.Names) > 0) == (len(e.Files) > 0):
		bad("%s %s: an entry has names, or files", kind, what)
	}
	for _, f := range e.Files {
		if _, err := path.Match(f, ""); err != nil {
			bad("%s: %s is no pattern of files: %w", kind, f, err)
		}
		if kind != cppnames.Unknown && ownCode(f) {
			bad("%s: names that %s reads need a verdict each", kind, f)
		}
	}
}

// merged are the names of all releases, with the files of the newest that has them.
func merged(releases map[string][]cppnames.Name) []Judged {
	byName := map[nameKey]*Judged{}
	var order []nameKey
	for _, release := range newestFirst(releases) {
		for _, n := range releases[release] {
			k := nameKey{n.Kind, n.Text}
			if byName[k] == nil {
				byName[k] = &Judged{Name: n}
				order = append(order, k)
			}
			byName[k].Releases = append(byName[k].Releases, release)
			for _, f := range n.Files { // what an older release reads elsewhere counts for its verdict
				if !slices.Contains(byName[k].Files, f) {
					byName[k].Files = append(byName[k].Files, f)
				}
			}
		}
	}
	slices.SortFunc(order, func(a, b nameKey) int {
		if c := strings.Compare(string(a.kind), string(b.kind)); c != 0 {
			return c
		}
		return strings.Compare(a.text, b.text)
	})
	all := make([]Judged, 0, len(order))
	for _, k := range order {
		all = append(all, *byName[k])
	}
	return all
}

func groupOf(n cppnames.Name, entries []Entry, used map[string]bool) (Entry, bool) {
	matching := func(file string) (int, string) {
		for i, e := range entries {
			for _, p := range e.Files {
				if ok, err := path.Match(p, file); err == nil && ok {
					return i, p
				}
			}
		}
		return -1, ""
	}
	first := -1
	for _, f := range n.Files {
		i, p := matching(f)
		if i < 0 {
			return Entry{}, false
		}
		used[p] = true
		if first < 0 || i < first {
			first = i
		}
	}
	if first < 0 {
		return Entry{}, false
	}
	return entries[first], true
}

// unread are the names that count as read as under stock, but that none of our literals has, and those that count as missing
// although one has them. HTCondor's names have no case; a name that is missing counts only as it is written, since short ones are
// words of English.
func unread(all []Judged, literals map[string]bool) error {
	lower := map[string]bool{}
	for l := range literals {
		lower[strings.ToLower(l)] = true
	}
	var problems *multierror.Error
	for _, n := range all {
		if n.Entry.Verdict == Missing && literals[n.Text] && !slices.Contains(n.Entry.Alike, n.Text) {
			problems = multierror.Append(problems, fmt.Errorf("%s %s is said to be missing, but a literal of our code is %q: has it been built?", n.Kind, n.Text, n.Text))
		}
		if n.Entry.Verdict != AsStock {
			continue
		}
		wanted := n.Entry.Found
		if len(wanted) == 0 {
			wanted = []string{n.Text}
		}
		for _, w := range wanted {
			if !lower[strings.ToLower(w)] {
				problems = multierror.Append(problems, fmt.Errorf("%s %s is said to work as under stock, but no literal of our code is %q", n.Kind, n.Text, w))
			}
		}
	}
	if problems == nil {
		return nil
	}
	return errors.Join(problems.Errors...)
}
