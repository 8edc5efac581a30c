package classads

import "errors"

// Flatten evaluates as much of an expression as the ad allows, and returns the
// rest: a constant if everything could be evaluated. References stay if the ad
// does not have the attribute or it has no value (HTCondor src/classad/classad.cpp:Flatten).
func (a *Ad) Flatten(e *Expr, env Env) (*Expr, error) {
	env.My, env.Target = a, nil
	ev := new(evaluator)
	sc := ev.start(&env)
	r, ok := ev.flatten(e.tree(), sc)
	if !ok || ev.failed {
		reason := "the evaluation of a part fails"
		if ev.reason != "" {
			reason = ev.reason
		}
		return nil, errors.New("flattening a ClassAd expression: " + reason)
	}
	return &Expr{r.node()}, nil
}

// residue is a flattened expression: a tree, or a value if the tree is nil. With an operator
// it is both, joined by that operator, which is commutative and associative, so that
// constants from different depths can be combined.
type residue struct {
	op   operator
	v    Value
	tree node
}

// node returns the expression that the residue is.
func (r residue) node() node {
	switch {
	case r.tree == nil:
		return literalNode(r.v)
	case r.op != opNone:
		return &operation{op: r.op, a: literalNode(r.v), b: r.tree}
	}
	return r.tree
}

// flatten flattens a node to a value or a tree.
func (ev *evaluator) flatten(n node, sc *scope) (residue, bool) {
	r, ok := ev.flattenPart(n, sc)
	if r.op != opNone {
		r = residue{tree: r.node()}
	}
	return r, ok
}

// flattenPart flattens an operand; the residue may be of both kinds.
func (ev *evaluator) flattenPart(n node, sc *scope) (residue, bool) {
	if !ev.step() {
		return residue{}, false
	}
	if ev.depth <= 0 {
		ev.fail("the expression nests too deep")
		return residue{}, false
	}
	ev.depth--
	defer func() { ev.depth++ }()
	switch n := n.(type) {
	case *attrRef:
		return ev.flattenRef(n, sc)
	case *operation:
		return ev.flattenOperation(n, sc)
	case *call:
		return ev.flattenCall(n, sc)
	case *listNode:
		items, _, ok := ev.flattenAll(n.items, sc)
		return residue{tree: &listNode{items}}, ok
	case *adNode:
		return ev.flattenAd(n, sc)
	}
	v := n.eval(ev, sc)
	return residue{v: v}, !ev.failed
}

func (ev *evaluator) flattenRef(r *attrRef, sc *scope) (residue, bool) {
	n, where, v := r.find(ev, sc)
	switch {
	case ev.failed:
		return residue{}, false
	case n != nil:
		if _, isAd := n.(*adNode); isAd {
			return residue{tree: r}, true
		}
		flat, ok := ev.flatten(n, where)
		if flat.tree != nil {
			flat = residue{tree: r}
		}
		return flat, ok
	case v.kind == Undefined || v.kind >= List:
		return residue{tree: r}, true
	}
	return residue{v: v}, true
}

func (ev *evaluator) flattenAd(n *adNode, sc *scope) (residue, bool) {
	inner := sc.inner(n.ad)
	out := NewAd()
	out.Grow(n.ad.Len())
	for i := range n.ad.attrs {
		r, ok := ev.flatten(n.ad.attrs[i].n, inner)
		if !ok {
			return residue{}, false
		}
		out.set(n.ad.attrs[i].name, r.node())
	}
	return residue{tree: &adNode{out}}, true
}

// flattenAll flattens nodes and tells whether all are values.
func (ev *evaluator) flattenAll(nodes []node, sc *scope) (out []node, values, ok bool) {
	values = true
	for _, n := range nodes {
		r, ok := ev.flatten(n, sc)
		if !ok {
			return nil, false, false
		}
		values = values && r.tree == nil
		out = append(out, r.node())
	}
	return out, values, true
}

func (ev *evaluator) flattenCall(c *call, sc *scope) (residue, bool) {
	if c.fn == nil {
		return residue{v: ErrorValue("unknown function")}, true
	}
	args, values, ok := ev.flattenAll(c.args, sc)
	if !ok {
		return residue{}, false
	}
	if !values {
		return residue{tree: &call{name: c.name, fn: c.fn, args: args}}, true
	}
	v := c.eval(ev, sc)
	return residue{v: v}, !ev.failed
}

// commutative tells the operators whose operands can be exchanged and joined.
func commutative(op operator) bool {
	switch op {
	case opAdd, opMultiply, opAnd, opOr, opBitAnd, opBitOr, opBitXor:
		return true
	}
	return false
}

func (ev *evaluator) flattenOperation(o *operation, sc *scope) (residue, bool) {
	switch {
	case o.op == opTernary:
		return ev.flattenTernary(o, sc)
	case commutative(o.op):
		a, ok := ev.flattenPart(o.a, sc)
		if !ok {
			return residue{}, false
		}
		b, ok := ev.flattenPart(o.b, sc)
		if !ok {
			return residue{}, false
		}
		return combine(o.op, a, b), true
	}
	a, ok := ev.flatten(o.a, sc)
	if !ok {
		return residue{}, false
	}
	if o.b == nil {
		switch {
		case a.tree != nil:
			return residue{tree: &operation{op: o.op, a: a.tree}}, true
		case o.op == opParentheses:
			return a, true
		}
		return residue{v: operate1(o.op, a.v)}, true
	}
	b, ok := ev.flatten(o.b, sc)
	if !ok {
		return residue{}, false
	}
	if a.tree != nil || b.tree != nil {
		return residue{tree: &operation{op: o.op, a: a.node(), b: b.node()}}, true
	}
	switch o.op {
	case opSubscript:
		return residue{v: subscript(ev, a.v, b.v)}, true
	case opElvis:
		if a.v.kind == Undefined {
			return b, true
		}
		return a, true
	}
	return residue{v: operate2(o.op, &a.v, &b.v)}, true
}

func (ev *evaluator) flattenTernary(o *operation, sc *scope) (residue, bool) {
	cond, ok := ev.flatten(o.a, sc)
	if !ok {
		return residue{}, false
	}
	if cond.tree == nil && cond.v.kind != Undefined {
		t, isBool := cond.v.truth()
		switch {
		case !isBool:
			return residue{v: ErrorValue("the condition of ?: is not a boolean")}, true
		case t:
			return ev.flatten(o.b, sc)
		}
		return ev.flatten(o.c, sc)
	}
	b, okB := ev.flatten(o.b, sc)
	c, okC := ev.flatten(o.c, sc)
	condition := cond.tree
	if condition == nil { // undefined
		condition = o.a
	}
	return residue{tree: &operation{opTernary, condition, b.node(), c.node()}}, okB && okC
}

// apply applies a commutative operator to values.
func apply(op operator, a, b Value) Value {
	if op != opAnd && op != opOr {
		return operate2(op, &a, &b)
	}
	if t, ok := a.truth(); ok && t == (op == opOr) {
		return BoolValue(t)
	}
	return logical(op, &a, &b)
}

// combine joins two flattened operands of a commutative operator
// (HTCondor src/classad/operators.cpp:combine).
func combine(op operator, a, b residue) residue {
	if a.tree == nil && b.tree == nil {
		return residue{v: apply(op, a.v, b.v)}
	}
	if (a.tree == nil || b.tree == nil) && (op == opAnd || op == opOr) {
		if r, ok := decided(op, &a, &b); ok {
			return r
		}
	}
	switch {
	case a.tree == nil && b.op == opNone:
		return residue{op: op, v: a.v, tree: b.tree}
	case b.tree == nil && a.op == opNone:
		return residue{op: op, v: b.v, tree: a.tree}
	case a.op != op && b.op != op:
		// Neither operand has a constant that could join.
		return residue{tree: &operation{op: op, a: a.node(), b: b.node()}}
	case a.op == op && b.op == op:
		return residue{op: op, v: apply(op, a.v, b.v), tree: &operation{op: op, a: a.tree, b: b.tree}}
	case a.op == op && b.tree == nil:
		return residue{op: op, v: apply(op, a.v, b.v), tree: a.tree}
	case a.op == op:
		return residue{op: op, v: a.v, tree: &operation{op: op, a: a.tree, b: b.node()}}
	case a.tree == nil:
		return residue{op: op, v: apply(op, a.v, b.v), tree: b.tree}
	}
	return residue{op: op, v: b.v, tree: &operation{op: op, a: a.node(), b: b.tree}}
}

// decided combines a constant and a tree with && or || if the constant alone decides, or is
// true and can be dropped. A constant number becomes a boolean.
func decided(op operator, a, b *residue) (residue, bool) {
	for _, pair := range [][2]*residue{{a, b}, {b, a}} {
		constant, other := pair[0], pair[1]
		if constant.tree != nil {
			continue
		}
		t, ok := constant.v.truth()
		if !ok {
			continue
		}
		constant.v = BoolValue(t)
		switch {
		case t == (op == opOr):
			return residue{v: constant.v}, true
		case op == opAnd:
			return *other, true
		}
	}
	return residue{}, false
}
