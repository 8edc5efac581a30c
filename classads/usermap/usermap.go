package usermap

import (
	"errors"
	"fmt"
	"strings"

	"podstarter/classads/internal/pattern"
)

// Map is one map. It never changes.
type Map struct {
	methods map[string][]entry // by the method's name in small letters
}

// entry is what consecutive lines of a method say: one expression, or any number of names.
type entry struct {
	expr    *pattern.Pattern
	becomes string            // with expr
	names   map[string]string // what each becomes
	longest int               // of names that are beginnings; 0 if they are whole names
}

// maxResult bounds what a name becomes, in bytes.
const maxResult = 1 << 20

var errLong = errors.New("what the name becomes is too long")

// Lookup returns what a name becomes. steps is how many steps searches for expressions may
// still take; it is made smaller. An error means that the answer is not known.
func (m *Map) Lookup(method, name string, steps *int) (becomes string, found bool, err error) {
	var room pattern.Room
	for _, e := range m.methods[lower(method)] {
		if e.expr == nil {
			if key, to, ok := e.lookup(name, steps); ok {
				becomes, err := fill(to, []string{key})
				return becomes, err == nil, err
			}
			if *steps < 0 {
				return "", false, pattern.ErrBudget
			}
			continue
		}
		found, err := e.expr.Found(name, 0, steps, &room)
		if err != nil {
			return "", false, err
		}
		if !found {
			continue
		}
		places, err := e.expr.In(name, steps).Match(0, 0, steps)
		if err != nil {
			return "", false, err
		}
		groups := make([]string, len(places)/2)
		for i := range groups {
			if places[2*i] >= 0 {
				groups[i] = name[places[2*i]:places[2*i+1]]
			}
		}
		becomes, err := fill(e.becomes, groups)
		return becomes, err == nil, err
	}
	return "", false, nil
}

// lookup finds a name among those of an entry, or its longest beginning.
func (e *entry) lookup(name string, steps *int) (key, becomes string, found bool) {
	*steps--
	if e.longest == 0 {
		becomes, found = e.names[name]
		return name, becomes, found
	}
	for n := min(len(name), e.longest); n > 0; n-- {
		*steps -= 1 + n/stepBytes
		if *steps < 0 {
			return "", "", false
		}
		if becomes, found = e.names[name[:n]]; found {
			return name[:n], becomes, true
		}
	}
	return "", "", false
}

// stepBytes is how many bytes of a name are looked at in one step.
const stepBytes = 64

// fill replaces \0 to \9 by groups (MapFile.cpp:PerformSubstitution). One without a group stays.
func fill(text string, groups []string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if b.Len() > maxResult {
			return "", errLong
		}
		c := text[i]
		if c == '\\' && i+1 < len(text) {
			i++
			if n := int(text[i]) - '0'; n >= 0 && n <= 9 && n < len(groups) {
				b.WriteString(groups[n])
				continue
			}
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	if b.Len() > maxResult {
		return "", errLong
	}
	return b.String(), nil
}

// Maps are maps by name.
type Maps struct{ byName map[string]*Map }

// Add adds a map, or replaces one. Names are compared without regard to case.
func (m *Maps) Add(name string, one *Map) {
	if m.byName == nil {
		m.byName = map[string]*Map{}
	}
	m.byName[lower(name)] = one
}

// Lookup answers the function userMap: name is that of a map, or MAP.method (classad_usermap.cpp:
// user_map_do_mapping).
func (m *Maps) Lookup(name, user string, steps *int) (groups string, found bool, err error) {
	name, method, ok := strings.Cut(name, ".")
	if !ok {
		method = "*"
	}
	one := m.byName[lower(name)]
	if one == nil {
		return "", false, nil
	}
	if groups, found, err = one.Lookup(method, user, steps); err != nil {
		err = fmt.Errorf("the map %s: %w", name, err)
	}
	return groups, found, err
}

// lower makes ASCII letters small.
func lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
