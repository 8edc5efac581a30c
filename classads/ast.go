package classads

import "sync/atomic"

// Expr is a parsed expression. It never changes, so several ads may share one,
// and any number of goroutines may evaluate it at once. The zero value, and a
// nil pointer, is the literal undefined.
type Expr struct{ n node }

// tree returns the root of the expression's tree.
func (e *Expr) tree() node {
	if e == nil || e.n == nil {
		return undefinedNode
	}
	return e.n
}

// node is one node of an expression tree.
type node interface {
	// eval yields the node's value. A failure that must end the whole
	// evaluation is recorded in ev.
	eval(ev *evaluator, sc *scope) Value
	// append writes the node as text.
	append(dst []byte, p printer) []byte
}

// literal is a constant.
type literal struct{ Value }

// relTimeNode is a literal relative time. It evaluates to a real, as it does in
// HTCondor (src/classad/classad/literals.h:ReltimeLiteral): only relTime() with
// a number yields a relative time.
type relTimeNode struct{ seconds float64 }

// attrRef is a reference to an attribute: name, .name or expr.name.
type attrRef struct {
	name     string
	hash     uint32
	special  specialName
	absolute bool // .name: looked up in the outermost ad
	from     node // expr.name

	// place is where an ad had the attribute last: ads of one kind have it in
	// the same place.
	place atomic.Uint32
}

// operation is an operator with its one to three operands.
type operation struct {
	op      operator
	a, b, c node
}

// call is a function call. fn is nil for an unknown function, whose call
// evaluates to error.
type call struct {
	compiled atomic.Pointer[compiledPattern] // of pattern functions
	name     string
	fn       *builtin
	args     []node
}

// listNode is { a, b, ... }.
type listNode struct{ items []node }

// adNode is a nested ad. It belongs to the expression and never changes.
type adNode struct{ ad *Ad }

var (
	undefinedNode = &literal{}
	errorNode     = &literal{ErrorValue("the literal error")}
	trueNode      = &literal{BoolValue(true)}
	falseNode     = &literal{BoolValue(false)}
)

func boolNode(b bool) node {
	if b {
		return trueNode
	}
	return falseNode
}

func stringNode(s string) node { return &literal{StringValue(cutNUL(s))} }

func cutNUL(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] == 0 {
			return s[:i]
		}
	}
	return s
}

// specialName marks the attribute names that have a meaning when no attribute of
// that name exists (HTCondor src/classad/classad.cpp:LookupInScope).
type specialName uint8

const (
	notSpecial specialName = iota
	nameSelf               // self, my
	nameParent
	nameRoot   // root, toplevel
	nameTarget // target, other: only in a match, as are the following
	nameOwn    // ad
	nameLeft   // left: the ad the evaluation began in
	nameRight  // right: the one it is matched with
	nameCurrentTime
)

func newAttrRef(name string, from node, absolute bool) *attrRef {
	r := &attrRef{name: name, hash: hashName(name), from: from, absolute: absolute}
	switch len(name) {
	case 2:
		if equalFold(name, "my") {
			r.special = nameSelf
		} else if equalFold(name, "ad") {
			r.special = nameOwn
		}
	case 4:
		if equalFold(name, "self") {
			r.special = nameSelf
		} else if equalFold(name, "root") {
			r.special = nameRoot
		} else if equalFold(name, "left") {
			r.special = nameLeft
		}
	case 5:
		if equalFold(name, "other") {
			r.special = nameTarget
		} else if equalFold(name, "right") {
			r.special = nameRight
		}
	case 6:
		if equalFold(name, "target") {
			r.special = nameTarget
		} else if equalFold(name, "parent") {
			r.special = nameParent
		}
	case 8:
		if equalFold(name, "toplevel") {
			r.special = nameRoot
		}
	case 11:
		if equalFold(name, "currenttime") {
			r.special = nameCurrentTime
		}
	}
	return r
}

// Literal returns an expression that is a constant. The value of a list or an ad
// becomes that list or ad.
func Literal(v Value) *Expr { return &Expr{literalNode(v)} }

func literalNode(v Value) node {
	switch v.kind {
	case Undefined:
		return undefinedNode
	case Bool:
		return boolNode(v.num != 0)
	case String:
		return stringNode(v.str)
	case RelTime:
		// HTCondor's literals made of values have whole seconds
		// (src/classad/classad/literals.h:MakeLiteral).
		return &relTimeNode{float64(wholeSeconds(v))}
	case List:
		return v.list
	case Record:
		return &adNode{v.sc.ad.Clone()}
	}
	return &literal{v}
}

// StringExpr returns a string literal, cut at the first NUL.
func StringExpr(s string) *Expr { return &Expr{stringNode(s)} }

// IntExpr returns an integer literal.
func IntExpr(i int64) *Expr { return &Expr{&literal{IntValue(i)}} }

// RealExpr returns a real literal.
func RealExpr(r float64) *Expr { return &Expr{&literal{RealValue(r)}} }

// BoolExpr returns a boolean literal.
func BoolExpr(b bool) *Expr { return &Expr{boolNode(b)} }

// AdExpr returns an expression that is a copy of the ad.
func AdExpr(a *Ad) *Expr { return &Expr{&adNode{a.Clone()}} }

// ListExpr returns a list of expressions.
func ListExpr(items ...*Expr) *Expr {
	l := &listNode{items: make([]node, len(items))}
	for i, e := range items {
		l.items[i] = e.tree()
	}
	return &Expr{l}
}
