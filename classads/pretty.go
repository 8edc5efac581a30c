package classads

import "slices"

// Pretty returns the expression in the new syntax, with lists and ads on several
// lines, as HTCondor's tools print them
// (src/classad/sink.cpp:PrettyPrint).
func (e *Expr) Pretty() string { return string(e.tree().append(nil, printer{pretty: &layout{}})) }

// Pretty returns the ad in the new syntax, on several lines.
func (a *Ad) Pretty() string { return string(appendAd(nil, a, printer{pretty: &layout{}})) }

// layout is how far the text is indented.
type layout struct{ indent int }

const (
	adIndent   = 4
	listIndent = 3
)

func (l *layout) line(dst []byte) []byte {
	dst = append(dst, '\n')
	for range l.indent {
		dst = append(dst, ' ')
	}
	return dst
}

func (l *layout) ad(dst []byte, a *Ad, p printer) []byte {
	l.indent += adIndent
	dst = append(l.line(dst), '[')
	l.indent += adIndent
	for i := range a.attrs {
		dst = l.line(dst)
		dst = appendLine(dst, a.attrs[i].name, a.attrs[i].n, p)
		if i+1 < len(a.attrs) {
			dst = append(dst, "; "...)
		}
	}
	l.indent -= adIndent
	dst = append(l.line(dst), ']')
	l.indent -= adIndent
	return dst
}

func (l *layout) list(dst []byte, items []node, p printer) []byte {
	l.indent += listIndent
	dst = append(l.line(dst), '{')
	l.indent += listIndent
	for i, n := range items {
		dst = l.line(dst)
		dst = n.append(dst, p)
		if i+1 < len(items) {
			dst = append(dst, ',')
		}
	}
	l.indent -= listIndent
	dst = append(l.line(dst), '}')
	l.indent -= listIndent
	return dst
}

// Sorted returns a copy of the ad with its attributes in the order in which
// HTCondor keeps and prints them: shorter names first, and names of the same
// length alphabetically, without regard to case (src/classad/classad/classad_flat_map.h).
func (a *Ad) Sorted() *Ad {
	c := a.Clone()
	slices.SortStableFunc(c.attrs, htcondorOrder)
	c.reindex()
	return c
}

func htcondorOrder(x, y attr) int {
	if len(x.name) != len(y.name) {
		return len(x.name) - len(y.name)
	}
	return compareFold(x.name, y.name)
}

// sorted returns an ad in HTCondor's order, the same one if it is already.
func (a *Ad) sorted() *Ad {
	if slices.IsSortedFunc(a.attrs, htcondorOrder) {
		return a
	}
	return a.Sorted()
}
