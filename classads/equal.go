package classads

import "math"

// Equal tells whether two ads have the same attributes with the same
// expressions. The order of the attributes does not matter, nor does the case
// of names. See [Expr.Equal] for when two expressions are the same. A nil ad
// equals only a nil ad.
func (a *Ad) Equal(b *Ad) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equalAds(a, b)
}

// Equal tells whether two expressions are written the same, except for white
// space, comments, and the case of the names of attributes and functions.
// Nothing is evaluated: 2 and 1 + 1 differ, and so do a and (a), 1 and 1.0,
// "x" and "X". Reals are the same if their bits are, or if both are not a
// number. Two times are the same if the moment and the offset are.
//
// Writing an expression and reading it again does not always yield an equal
// one: text has 16 digits of a real, and a minus before a number becomes part
// of the number.
func (e *Expr) Equal(other *Expr) bool { return equalNodes(e.tree(), other.tree()) }

func equalAds(a, b *Ad) bool {
	if a == b {
		return true
	}
	if len(a.attrs) != len(b.attrs) {
		return false
	}
	for i := range a.attrs {
		n := b.find(a.attrs[i].name, a.attrs[i].hash)
		if n == nil || !equalNodes(a.attrs[i].n, n) {
			return false
		}
	}
	return true
}

// equalNodes compares two trees; a nil node is an operand that an operator does
// not have.
func equalNodes(a, b node) bool {
	if a == nil || b == nil {
		return a == b
	}
	switch a := a.(type) {
	case *literal:
		b, ok := b.(*literal)
		return ok && equalLiterals(a.Value, b.Value)
	case *relTimeNode:
		b, ok := b.(*relTimeNode)
		return ok && equalReals(a.seconds, b.seconds)
	case *attrRef:
		b, ok := b.(*attrRef)
		return ok && a.absolute == b.absolute && equalFold(a.name, b.name) && equalNodes(a.from, b.from)
	case *operation:
		b, ok := b.(*operation)
		return ok && a.op == b.op && equalNodes(a.a, b.a) && equalNodes(a.b, b.b) && equalNodes(a.c, b.c)
	case *call:
		b, ok := b.(*call)
		return ok && equalFold(a.name, b.name) && equalItems(a.args, b.args)
	case *listNode:
		b, ok := b.(*listNode)
		return ok && equalItems(a.items, b.items)
	case *adNode:
		b, ok := b.(*adNode)
		return ok && equalAds(a.ad, b.ad)
	}
	return false
}

func equalItems(a, b []node) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equalNodes(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalLiterals(a, b Value) bool {
	switch {
	case a.kind != b.kind:
		return false
	case a.kind == Error: // the reason is for people
		return true
	case a.kind == Real || a.kind == RelTime:
		return equalReals(a.float(), b.float())
	}
	return a.num == b.num && a.off == b.off && a.str == b.str
}

func equalReals(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}
