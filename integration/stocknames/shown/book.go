package shown

import (
	"bytes"
	"cmp"
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
	// Beside are tests that run the stock starter as they run ours, and compare the two. A name that Shown gives to one of them is
	// shown under both starters.
	Beside []string `json:"beside"`
	// Ours are names that only other tests show, each with the reason why nothing shows them under both starters.
	Ours []Entry `json:"ours"`
	// Not are names that no test shows, each with the reason.
	Not []Entry `json:"not"`
}

// Entry is a row of a [Book].
type Entry struct {
	Kind  cppnames.Kind `json:"kind"`
	Names []string      `json:"names"`
	// By are cases, as SUBJECT/CASE, or tests, as PACKAGE TestX; of what is shown.
	By []string `json:"by,omitempty"`
	// Why is the reason; of what is not, or by our own tests only.
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

// Row is a name with what shows its verdict.
type Row struct {
	Name   Name
	Cases  []string
	Beside []Test // those that run the stock starter, too
	Tests  []Test // all others
	Why    string // why nothing shows it under both starters, or nothing at all
}

// Both says whether something shows the name under both starters.
func (r Row) Both() bool { return len(r.Cases) > 0 || len(r.Beside) > 0 }

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
	beside := map[Test]bool{}
	for _, by := range f.Book.Beside {
		pkg, test, _ := strings.Cut(by, " ")
		if _, exists := f.Tests[Test{pkg, test}]; !exists {
			bad("there is no test %s in %s, which is said to run the stock starter", test, pkg)
		}
		beside[Test{pkg, test}] = true
	}
	byHand := map[Name][]Test{} // of those tests
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
					t := Test{pkg, test}
					if tests[n] = slices.DeleteFunc(tests[n], func(o Test) bool { return o == t }); beside[t] {
						byHand[n] = append(byHand[n], t)
					} else {
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
	ours, not := map[Name]string{}, map[Name]string{}
	for _, of := range []struct {
		entries []Entry
		why     map[Name]string
	}{{f.Book.Ours, ours}, {f.Book.Not, not}} {
		for _, e := range of.entries {
			if e.Why == "" || len(e.By) > 0 || len(e.Names) == 0 {
				bad("%s %s: what is not shown under both starters needs a reason (why), and nothing else", e.Kind, strings.Join(e.Names, " "))
			}
			for _, text := range e.Names {
				of.why[Name{e.Kind, text}] = e.Why
			}
		}
	}
	var rows []Row
	for _, n := range names {
		r := Row{n, cases[n], byHand[n], tests[n], cmp.Or(ours[n], not[n])}
		some := r.Both() || len(r.Tests) > 0
		switch {
		case some && not[n] != "":
			bad("%s %s is said to be shown by nothing, but there is %s", n.Kind, n.Text, r.first())
		case r.Both() && ours[n] != "":
			bad("%s %s is said to be shown by our own tests only, but there is %s", n.Kind, n.Text, r.first())
		case !some && not[n] == "":
			bad("%s %s has a verdict that nothing shows: write a case or a test, or say in the book by what it is shown", n.Kind, n.Text)
		case some && !r.Both() && ours[n] == "":
			bad("%s %s is only shown by %s, without the stock starter: write a case, or say in the book (ours) why there can be none", n.Kind, n.Text, r.first())
		}
		rows = append(rows, r)
	}
	for _, e := range slices.Concat(f.Book.Shown, f.Book.Ours, f.Book.Not) {
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
	t := slices.Concat(r.Beside, r.Tests)[0]
	return t.Name + " in " + t.Package
}

func hasCase(subjects []conformance.Subject, by string) bool {
	subject, name, _ := strings.Cut(by, "/")
	return slices.ContainsFunc(subjects, func(s conformance.Subject) bool {
		return s.Name == subject && (name == "" || slices.ContainsFunc(s.Cases, func(c conformance.Case) bool { return c.Name == name }))
	})
}
