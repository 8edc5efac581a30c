package shown

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"

	"podstarter/integration/conformance"
	"podstarter/integration/stocknames/cppnames"
)

// Book is what is said by hand.
type Book struct {
	// Shown are names for which something stands that does not name them: a test of what becomes of a setting, say.
	Shown []Entry `json:"shown"`
	// Not are names that no test shows, each with the reason.
	Not []Entry `json:"not"`
}

// Entry is a row of a [Book].
type Entry struct {
	Kind  cppnames.Kind `json:"kind"`
	Names []string      `json:"names"`
	// By are cases, as SUBJECT/CASE, or tests, as PACKAGE TestX; of what is shown.
	By []string `json:"by,omitempty"`
	// Why is the reason; of what is not.
	Why string `json:"why,omitempty"`
}

// ReadBook reads a file of JSON.
func ReadBook(path string) (Book, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Book{}, fmt.Errorf("read what shows the verdicts: %w", err)
	}
	var b Book
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return Book{}, fmt.Errorf("read what shows the verdicts in %s: %w", path, err)
	}
	return b, nil
}

// Row is a name with what shows its verdict, or with the reason why nothing does.
type Row struct {
	Name  Name
	Cases []string
	Tests []Test
	Why   string
}

// Finder has all that can show a name.
type Finder struct {
	Subjects []conformance.Subject
	Commands Commands
	Reported map[Name]bool
	Tests    map[Test][]string
	Book     Book
}

// Rows are the names in their order. The error has each that nothing shows and no reason is given for, and each entry of the
// book that is wrong.
func (f Finder) Rows(names []Name) ([]Row, error) {
	var problems *multierror.Error
	bad := func(format string, args ...any) { problems = multierror.Append(problems, fmt.Errorf(format, args...)) }
	cases, tests := ByCases(f.Subjects, f.Commands, names), ByTests(f.Tests, names)
	for n := range f.Reported {
		add(cases, n, EachCase)
	}
	why := map[Name]string{}
	for _, e := range f.Book.Shown {
		if len(e.By) == 0 || e.Why != "" || len(e.Names) == 0 {
			bad("%s %s: what is shown needs a case or a test (by), and no reason", e.Kind, strings.Join(e.Names, " "))
		}
		for _, by := range e.By {
			pkg, test, isTest := strings.Cut(by, " ")
			_, exists := f.Tests[Test{pkg, test}]
			switch {
			case isTest && !exists:
				bad("%s %s: there is no test %s in %s", e.Kind, strings.Join(e.Names, " "), test, pkg)
			case !isTest && !hasCase(f.Subjects, by):
				bad("%s %s: there is no case %s", e.Kind, strings.Join(e.Names, " "), by)
			}
			for _, text := range e.Names {
				n := Name{e.Kind, text}
				if isTest {
					if t := (Test{pkg, test}); !slices.Contains(tests[n], t) {
						tests[n] = slices.Insert(tests[n], 0, t)
					}
					continue
				}
				if !slices.Contains(cases[n], by) {
					cases[n] = slices.Insert(cases[n], 0, by)
				}
			}
		}
	}
	for _, e := range f.Book.Not {
		if e.Why == "" || len(e.By) > 0 || len(e.Names) == 0 {
			bad("%s %s: what is not shown needs a reason (why), and nothing else", e.Kind, strings.Join(e.Names, " "))
		}
		for _, text := range e.Names {
			why[Name{e.Kind, text}] = e.Why
		}
	}
	var rows []Row
	for _, n := range names {
		r := Row{n, cases[n], tests[n], why[n]}
		switch some := len(r.Cases) > 0 || len(r.Tests) > 0; {
		case some && r.Why != "":
			bad("%s %s is said to be shown by nothing, but there is %s", n.Kind, n.Text, r.first())
		case !some && r.Why == "":
			bad("%s %s has a verdict that nothing shows: write a case or a test, or say in the book by what it is shown", n.Kind, n.Text)
		}
		rows = append(rows, r)
	}
	for _, e := range slices.Concat(f.Book.Shown, f.Book.Not) {
		for _, text := range e.Names {
			if !slices.Contains(names, Name{e.Kind, text}) {
				bad("%s %s is in the book, but no verdict on it needs to be shown", e.Kind, text)
			}
		}
	}
	return rows, problems.ErrorOrNil()
}

func (r Row) first() string {
	if len(r.Cases) > 0 {
		return "the case " + r.Cases[0]
	}
	return r.Tests[0].Name + " in " + r.Tests[0].Package
}

func hasCase(subjects []conformance.Subject, by string) bool {
	subject, name, _ := strings.Cut(by, "/")
	return slices.ContainsFunc(subjects, func(s conformance.Subject) bool {
		return s.Name == subject && (name == "" || slices.ContainsFunc(s.Cases, func(c conformance.Case) bool { return c.Name == name }))
	})
}
