package conformance

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"

	"podstarter/integration/harness"
)

// Must is what must become of a case's jobs, under both starters or, where they
// differ on purpose, under each. Several endings mean that one of them must come.
type Must struct {
	Case        string
	Pools       string // kind of pools, as [Rule] has it; empty for all that no other entry names
	Stock, Ours []Ending
}

//go:embed endings
var endingFiles embed.FS

// Musts reads what must become of the cases, from a file for each subject:
//
//	plain
//	    submitted, executing, exit code 0
//	    back: out "hello\n"
//
//	case-with-a-difference with 23.9+*
//	  stock:
//	    submitted, executing, exit code 0
//	  ours:
//	    submitted, executing, held 12/1
//	  or:
//	    submitted, held 12/1
//
//	case-with-a-difference with rootless
//	    submitted, held 12/1
func Musts() ([]Must, error) {
	names, err := fs.Glob(endingFiles, "endings/*")
	if err != nil {
		return nil, err
	}
	var all []Must
	for _, name := range names {
		text, err := endingFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		found, err := parseMusts(string(text))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		for _, m := range found {
			if !slices.ContainsFunc(subjectNamed(path.Base(name)).Cases, func(c Case) bool { return c.Name == m.Case }) {
				return nil, fmt.Errorf("%s: the subject has no case %q", name, m.Case)
			}
		}
		all = append(all, found...)
	}
	return all, nil
}

func subjectNamed(name string) Subject {
	for _, s := range Subjects() {
		if s.Name == name {
			return s
		}
	}
	return Subject{}
}

// The indents of a file of endings.
const (
	whoseIndent = "  "
	lineIndent  = "    "
)

func parseMusts(text string) ([]Must, error) {
	var all []Must
	var to *[]Ending // where a line belongs; nil before the first and for both
	for i, line := range strings.Split(text, "\n") {
		fail := func(what string) error { return fmt.Errorf("line %d, %q: %s", i+1, line, what) }
		var m *Must
		if len(all) > 0 {
			m = &all[len(all)-1]
		}
		switch {
		case strings.TrimSpace(line) == "":
		case !strings.HasPrefix(line, " "):
			name, pools, limited := strings.Cut(line, " with ")
			if limited {
				if err := checkKinds([]string{pools}); err != nil {
					return nil, fail(err.Error())
				}
			}
			all, to = append(all, Must{Case: name, Pools: pools}), nil
		case m == nil:
			return nil, fail("no case is named before it")
		case !strings.HasPrefix(line, lineIndent):
			switch strings.TrimPrefix(line, whoseIndent) {
			case "stock:":
				to = &m.Stock
			case "ours:":
				to = &m.Ours
			case "or:":
			default:
				return nil, fail("want stock:, ours: or or:")
			}
			if to != nil {
				*to = append(*to, nil)
				continue
			}
			m.Stock = append(m.Stock, nil)
		default:
			if to == nil && len(m.Stock) == 0 {
				m.Stock = []Ending{nil}
			}
			whose := to
			if whose == nil {
				whose = &m.Stock
			}
			last := len(*whose) - 1
			(*whose)[last] = append((*whose)[last], strings.TrimPrefix(line, lineIndent))
		}
	}
	for i, m := range all {
		switch {
		case len(m.Stock) == 0:
			return nil, fmt.Errorf("%s: nothing is said of the stock starter", m.Case)
		case len(m.Ours) == 0:
			all[i].Ours = m.Stock
		}
	}
	return all, nil
}

// WriteMusts is the text of a file of endings.
func WriteMusts(all []Must) string {
	var b strings.Builder
	for i, m := range all {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(m.Case)
		if m.Pools != "" {
			b.WriteString(" with " + m.Pools)
		}
		b.WriteString("\n")
		write := func(whose string, endings []Ending) {
			for i, o := range endings {
				switch {
				case i > 0:
					b.WriteString(whoseIndent + "or:\n")
				case whose != "":
					b.WriteString(whoseIndent + whose + ":\n")
				}
				for _, line := range o {
					b.WriteString(lineIndent + line + "\n")
				}
			}
		}
		if equalEndings(m.Stock, m.Ours) {
			write("", m.Stock)
			continue
		}
		write("stock", m.Stock)
		write("ours", m.Ours)
	}
	return b.String()
}

func equalEndings(a, b []Ending) bool {
	return slices.EqualFunc(a, b, func(a, b Ending) bool { return slices.Equal(a, b) })
}

// mustOf is the entry for the case in such a pool: the most particular one.
func mustOf(all []Must, name string, k harness.Kind) (Must, bool) {
	var found []Must
	for _, m := range all {
		if m.Case == name && (m.Pools == "" || ofKind([]string{m.Pools}, k)) {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return Must{}, false
	}
	return slices.MaxFunc(found, func(a, b Must) int {
		return cmp.Compare(len(strings.ReplaceAll(a.Pools, "*", "")), len(strings.ReplaceAll(b.Pools, "*", "")))
	}), true
}

// Unmet says what did not become of a case as it must.
func Unmet(all []Must, name string, k harness.Kind, stock, ours Ending) error {
	m, ok := mustOf(all, name, k)
	if !ok {
		return fmt.Errorf("endings/ does not say what must become of %s with %s: run it with -record and read what it writes", name, k)
	}
	var wrong *multierror.Error
	for _, side := range []struct {
		side harness.Side
		must []Ending
		came Ending
	}{{harness.Stock, m.Stock, stock}, {harness.Ours, m.Ours, ours}} {
		if slices.ContainsFunc(side.must, func(o Ending) bool { return slices.Equal(o, side.came) }) {
			continue
		}
		var want []string
		for _, o := range side.must {
			want = append(want, strings.Join(o, "\n\t"))
		}
		wrong = multierror.Append(wrong, fmt.Errorf("the %s side did not end as it must; it must\n\t%s\nit came to\n\t%s",
			side.side, strings.Join(want, "\nor\n\t"), strings.Join(side.came, "\n\t")))
	}
	if wrong == nil {
		return nil
	}
	return errors.Join(wrong.Errors...)
}

// Learn returns the entries with what became of a case. An entry that says so
// already stays; else one for all pools is made, and one for this kind of pool where
// that says something else.
func Learn(all []Must, name string, k harness.Kind, stock, ours Ending) []Must {
	if Unmet(all, name, k, stock, ours) == nil {
		return all
	}
	learnt := Must{Case: name, Stock: []Ending{stock}, Ours: []Ending{ours}}
	if _, ok := mustOf(all, name, k); ok && k != Newest {
		learnt.Pools = k.String()
		if k.Versions == Newest.Versions {
			learnt.Pools = k.Special()
		}
	}
	same := func(m Must) bool { return m.Case == name && m.Pools == learnt.Pools }
	if i := slices.IndexFunc(all, same); i >= 0 {
		all = slices.Clone(all)
		all[i] = learnt
		return all
	}
	last := -1
	for i, m := range all {
		if m.Case == name {
			last = i
		}
	}
	if last < 0 {
		return append(slices.Clone(all), learnt)
	}
	return slices.Insert(slices.Clone(all), last+1, learnt)
}
