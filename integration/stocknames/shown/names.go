package shown

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"podstarter/integration/stocknames/cppnames"
)

// Name is a knob or an attribute, as the lists of releases have it.
type Name struct {
	Kind cppnames.Kind
	Text string
}

// index finds names by words of a text.
type index struct {
	exact    map[cppnames.Kind]map[string]Name // by the name in lower case
	patterns []pattern
}

type pattern struct {
	name Name
	is   *regexp.Regexp
}

func newIndex(names []Name) index {
	x := index{exact: map[cppnames.Kind]map[string]Name{}}
	for _, n := range names {
		if x.exact[n.Kind] == nil {
			x.exact[n.Kind] = map[string]Name{}
		}
		if !strings.ContainsAny(n.Text, "*<") {
			x.exact[n.Kind][strings.ToLower(n.Text)] = n
			continue
		}
		like := strings.NewReplacer(regexp.QuoteMeta("*"), `\w*`, "<SUBSYS>", "STARTER").Replace(regexp.QuoteMeta(n.Text))
		x.patterns = append(x.patterns, pattern{n, regexp.MustCompile("(?i)^" + like + "$")})
	}
	return x
}

// set are the names of a kind that something sets which is called so. HTCondor's names have no case.
func (x index) set(kind cppnames.Kind, called string) []Name {
	var found []Name
	if n, ok := x.exact[kind][strings.ToLower(called)]; ok {
		found = append(found, n)
	}
	for _, p := range x.patterns {
		if p.name.Kind == kind && p.is.MatchString(called) {
			found = append(found, p.name)
		}
	}
	return found
}

var (
	word = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	// beforeEquals is what stands before an equals sign.
	beforeEquals = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_]*)\s*=`)
)

// named are the names of a kind that a text has as words, written as HTCondor does. A name that may as well be a word of English
// or a program's counts only where it is assigned, and so does a pattern for knobs.
func (x index) named(kind cppnames.Kind, text string) []Name {
	found := x.assigned(kind, text)
	for _, w := range word.FindAllString(text, -1) {
		if !distinctive(Name{kind, w}) {
			continue
		}
		if n, ok := x.exact[kind][strings.ToLower(w)]; ok && n.Text == w && !slices.Contains(found, n) {
			found = append(found, n)
		}
		if kind == cppnames.Knob {
			continue
		}
		for _, p := range x.patterns {
			if p.name.Kind == kind && p.is.MatchString(w) && !slices.Contains(found, p.name) {
				found = append(found, p.name)
			}
		}
	}
	return found
}

// assigned are the names of a kind that stand before an equals sign.
func (x index) assigned(kind cppnames.Kind, text string) []Name {
	var found []Name
	for _, m := range beforeEquals.FindAllStringSubmatch(text, -1) {
		if n, ok := x.exact[kind][strings.ToLower(m[1])]; ok && n.Text == m[1] && !slices.Contains(found, n) {
			found = append(found, n)
		}
		for _, p := range x.patterns {
			if p.name.Kind == kind && p.is.MatchString(m[1]) && !slices.Contains(found, p.name) {
				found = append(found, p.name)
			}
		}
	}
	return found
}

// distinctive says whether a word is hardly anything but this name: a knob of several words, an attribute of several.
func distinctive(n Name) bool {
	if n.Kind == cppnames.Knob {
		return strings.Contains(strings.Trim(n.Text, "_"), "_")
	}
	parts := 0
	before := ' '
	for _, c := range n.Text {
		if unicode.IsUpper(c) && !unicode.IsUpper(before) || c == '_' || unicode.IsDigit(c) {
			parts++
		}
		before = c
	}
	return parts >= 2
}
