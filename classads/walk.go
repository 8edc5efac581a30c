package classads

import (
	"iter"
	"strings"
)

// Walk calls visit for the expression and then, where visit returned true, for
// each of its parts in the order in which they are written: operands,
// arguments, elements of lists, attributes of nested ads, and what an attribute
// is selected from. Nothing is evaluated. To see what a part is, ask it:
// [Expr.Literal], [Expr.Reference], [Expr.Operation], [Expr.Call], [Expr.List]
// or [Expr.Ad]; for each part one of these answers.
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

// Literal returns the constant that the expression is; false if it is anything
// else, for instance a list.
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
	// From is what the attribute is selected from: in TARGET.Memory the
	// expression TARGET. It is nil for a plain name.
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

// Reference returns the reference to an attribute that the expression is; false
// if it is anything else.
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

// References iterates over the references to attributes that the expression
// contains, in the order in which they are written, each as often as it is
// written. A name of a scope before a point is part of what follows: TARGET.Memory is
// one reference, while a.b is one to b and one to a. [Ad.ExternalReferences]
// and [Ad.InternalReferences] follow references from attribute to attribute;
// this does not.
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
// operation; false if it is anything else. The operators are written as in the
// language, with =?= and =!= for is and isnt; () is a pair of parentheses, [] a
// subscript, and ? a conditional with its three operands.
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

// Ad returns a copy of the ad that the expression is; false if it is anything
// else.
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
