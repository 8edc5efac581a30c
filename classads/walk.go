package classads

import (
	"iter"
	"strings"
)

// Walk calls visit for the expression and, if visit returns true, for each of its
// parts, in the order of the text: operands, arguments, elements of lists,
// attributes of nested ads, and the expression from which an attribute is
// selected. It evaluates nothing. Every part is exactly one of these:
// [Expr.Literal], [Expr.Reference], [Expr.Operation], [Expr.Call], [Expr.List]
// or [Expr.Ad].
func (e *Expr) Walk(visit func(*Expr) bool) { walk(e.tree(), visit) }

func walk(n node, visit func(*Expr) bool) {
	if !visit(&Expr{n}) {
		return
	}
	for part := range parts(n) {
		walk(part, visit)
	}
}

// parts iterates over the nodes directly below a node.
func parts(n node) iter.Seq[node] {
	return func(yield func(node) bool) {
		each := func(nodes ...node) {
			for _, n := range nodes {
				if n != nil && !yield(n) {
					return
				}
			}
		}
		switch n := n.(type) {
		case *attrRef:
			each(n.from)
		case *operation:
			each(n.a, n.b, n.c)
		case *call:
			each(n.args...)
		case *listNode:
			each(n.items...)
		case *adNode:
			for i := range n.ad.attrs {
				if !yield(n.ad.attrs[i].n) {
					return
				}
			}
		}
	}
}

// Literal returns the value of an expression that is a constant; false if it is
// anything else, for instance a list.
func (e *Expr) Literal() (Value, bool) {
	switch n := e.tree().(type) {
	case *literal:
		return n.Value, true
	case *relTimeNode:
		return RelTimeValue(n.seconds), true
	}
	return Value{}, false
}

// Reference is a reference to an attribute.
type Reference struct {
	Name string
	// From is the expression from which the attribute is selected: TARGET in
	// TARGET.Memory. It is nil for a plain name.
	From *Expr
	// Absolute marks .Name, which is looked up in the outermost ad.
	Absolute bool
}

// Scope returns the name before the point if the attribute is selected from one
// plain name, such as TARGET in TARGET.Memory; else an empty string.
func (r Reference) Scope() string {
	if r.From == nil {
		return ""
	}
	if from, ok := r.From.tree().(*attrRef); ok && from.from == nil && !from.absolute {
		return from.name
	}
	return ""
}

// String returns the reference as it is written in the new syntax.
func (r Reference) String() string {
	var from node
	if r.From != nil {
		from = r.From.tree()
	}
	return string(newAttrRef(r.Name, from, r.Absolute).append(nil, printer{}))
}

// Reference returns an expression that is a reference to an attribute; false if
// it is anything else.
func (e *Expr) Reference() (Reference, bool) {
	r, ok := e.tree().(*attrRef)
	if !ok {
		return Reference{}, false
	}
	out := Reference{Name: r.name, Absolute: r.absolute}
	if r.from != nil {
		out.From = &Expr{r.from}
	}
	return out, true
}

// References iterates over the references to attributes in the text of the
// expression, in its order. A reference that occurs twice comes twice. MY, TARGET
// and other names of ads are not references of their own before a point:
// TARGET.Memory is one reference, but a.b is one to b and one to a.
// References does not look at the attributes themselves, unlike
// [Ad.ExternalReferences] and [Ad.InternalReferences].
func (e *Expr) References() iter.Seq[Reference] {
	return func(yield func(Reference) bool) {
		stopped := false
		e.Walk(func(part *Expr) bool {
			if stopped {
				return false
			}
			r, ok := part.Reference()
			if !ok {
				return true
			}
			stopped = !yield(r)
			return !selectsFromScope(part.n)
		})
	}
}

// selectsFromScope tells whether a reference is one such as MY.x or TARGET.x.
func selectsFromScope(n node) bool {
	from, ok := n.(*attrRef).from.(*attrRef)
	return ok && from.from == nil && !from.absolute && from.special != notSpecial && from.special != nameCurrentTime
}

// Operation returns the operator and the operands of an expression that is an
// operation; false if it is anything else. Operators are named as in the
// language: =?= and =!= stand for is and isnt too, () for a pair of parentheses,
// [] for a subscript, and ? for a conditional, which has three operands.
func (e *Expr) Operation() (operator string, operands []*Expr, ok bool) {
	o, ok := e.tree().(*operation)
	if !ok {
		return "", nil, false
	}
	switch o.op {
	case opParentheses:
		operator = "()"
	case opSubscript:
		operator = "[]"
	case opTernary:
		operator = "?"
	default:
		operator = strings.TrimSpace(operatorTexts[o.op].old)
	}
	for n := range parts(o) {
		operands = append(operands, &Expr{n})
	}
	return operator, operands, true
}

// Call returns the name of the function and the arguments of an expression that
// is a function call; false if it is anything else.
func (e *Expr) Call() (function string, arguments []*Expr, ok bool) {
	c, ok := e.tree().(*call)
	if !ok {
		return "", nil, false
	}
	return c.name, exprs(c.args), true
}

// List returns the elements of an expression that is a list; false if it is
// anything else.
func (e *Expr) List() ([]*Expr, bool) {
	l, ok := e.tree().(*listNode)
	if !ok {
		return nil, false
	}
	return exprs(l.items), true
}

// Ad returns a copy of an expression that is an ad; false if it is anything else.
func (e *Expr) Ad() (*Ad, bool) {
	a, ok := e.tree().(*adNode)
	if !ok {
		return nil, false
	}
	return a.ad.Clone(), true
}

func exprs(nodes []node) []*Expr {
	out := make([]*Expr, len(nodes))
	for i, n := range nodes {
		out[i] = &Expr{n}
	}
	return out
}
