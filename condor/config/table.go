package config

import (
	"slices"
	"strings"
)

// table holds knobs in the order of their names. A starter keeps 1500 of them as long as its
// job runs, so it is small: its strings are parts of one, and it does not keep the tool's
// output, of which they are a half.
type table []knob

type knob struct {
	name string // in capital letters
	entry
}

// newTable makes a table of copies.
func newTable(all map[string]entry) table {
	var text strings.Builder
	size := 0
	places := map[string]string{} // many knobs are set at the same place, <Default>
	for name, e := range all {
		size += len(name) + len(e.value)
		if _, seen := places[e.at]; !seen {
			places[e.at] = strings.Clone(e.at)
		}
	}
	text.Grow(size)
	part := func(s string) string {
		begin := text.Len()
		text.WriteString(s)
		return text.String()[begin:]
	}
	t := make(table, 0, len(all))
	for name, e := range all {
		t = append(t, knob{part(name), entry{part(e.value), places[e.at]}})
	}
	slices.SortFunc(t, func(a, b knob) int { return strings.Compare(a.name, b.name) })
	return t
}

func (t table) index(name string) (int, bool) {
	return slices.BinarySearchFunc(t, name, func(k knob, name string) int { return strings.Compare(k.name, name) })
}

// find finds a knob by its name in capital letters.
func (t table) find(name string) (entry, bool) {
	i, ok := t.index(name)
	if !ok {
		return entry{}, false
	}
	return t[i].entry, true
}

// set replaces what a knob of the table is set to.
func (t table) set(name string, e entry) {
	if i, ok := t.index(name); ok {
		t[i].entry = e
	}
}
