package classads

// truth converts a boolean or number to a boolean.
func (v *Value) truth() (b, ok bool) {
	switch v.kind {
	case Bool, Int:
		return v.num != 0, true
	case Real:
		return v.float() != 0, true
	}
	return false, false
}

// exceptional reports whether a value is undefined or an error.
func (v *Value) exceptional() bool { return v.kind <= Error }

// eval applies the operator (HTCondor src/classad/operators.cpp).
func (o *operation) eval(ev *evaluator, sc *scope) Value {
	if ev.steps--; ev.steps < 0 || ev.failed {
		return ev.stop()
	}
	if ev.depth <= 0 {
		return ev.fail("the evaluation nests too deep")
	}
	ev.depth--
	var v Value
	switch o.op {
	case opParentheses:
		v = o.a.eval(ev, sc)
	case opPlus, opMinus, opNot, opBitNot:
		v = operate1(o.op, o.a.eval(ev, sc))
	case opAnd, opOr:
		v = o.logical(ev, sc)
	case opElvis:
		if v = o.a.eval(ev, sc); v.kind == Undefined {
			v = o.b.eval(ev, sc)
		}
	case opTernary:
		v = o.choose(ev, sc, o.a.eval(ev, sc))
	case opSubscript:
		v = o.a.eval(ev, sc)
		v = subscript(ev, v, o.b.eval(ev, sc))
	default:
		v = o.binary(ev, sc)
	}
	ev.depth++
	return v
}

// binary applies an operator that needs both operands.
func (o *operation) binary(ev *evaluator, sc *scope) Value {
	var bufA, bufB Value
	a := ev.operand(o.a, sc, &bufA)
	b := ev.operand(o.b, sc, &bufB)
	return operate2(o.op, a, b)
}

// logical is && or ||.
func (o *operation) logical(ev *evaluator, sc *scope) Value {
	var bufA, bufB Value
	a := ev.operand(o.a, sc, &bufA)
	if t, ok := a.truth(); ok && t == (o.op == opOr) {
		return BoolValue(t)
	}
	if a.kind == Error {
		return *a
	}
	return logical(o.op, a, ev.operand(o.b, sc, &bufB))
}

// operand evaluates an operand. Most are constants, or attributes with constants:
// these are not copied. The value must not be changed.
func (ev *evaluator) operand(n node, sc *scope, buf *Value) *Value {
	switch n := n.(type) {
	case *literal:
		ev.steps--
		return &n.Value
	case *attrRef:
		if l := n.constant(sc); l != nil && ev.steps > 0 {
			ev.steps -= 2
			return &l.Value
		}
	case *operation:
		if n.op == opParentheses && ev.depth > 0 && ev.steps > 0 {
			ev.steps--
			ev.depth--
			v := ev.operand(n.a, sc, buf)
			ev.depth++
			return v
		}
	}
	*buf = n.eval(ev, sc)
	return buf
}

// choose finishes a ? b : c.
func (o *operation) choose(ev *evaluator, sc *scope, a Value) Value {
	if t, ok := a.truth(); ok {
		if t {
			return o.b.eval(ev, sc)
		}
		return o.c.eval(ev, sc)
	}
	if a.exceptional() {
		return a
	}
	o.b.eval(ev, sc)
	o.c.eval(ev, sc)
	return ErrorValue("the condition of ?: is not a boolean")
}

// operate1 applies a unary operator or parentheses.
func operate1(op operator, a Value) Value {
	if op == opParentheses || a.exceptional() {
		return a
	}
	switch op {
	case opPlus:
		switch a.kind {
		case Int, Real, RelTime:
			return a
		}
	case opMinus:
		switch a.kind {
		case Int:
			return IntValue(-a.num)
		case Real:
			return RealValue(-a.float())
		case RelTime:
			return RelTimeValue(-a.float())
		}
	case opNot:
		if t, ok := a.truth(); ok {
			return BoolValue(!t)
		}
	case opBitNot:
		if a.kind == Int {
			return IntValue(^a.num)
		}
	}
	return ErrorValue("a unary operator on a value it is not defined for")
}

// operate2 applies a binary operator that needs both operands.
func operate2(op operator, a, b *Value) Value {
	if op == opIs || op == opIsnt {
		return identical(op, a, b)
	}
	if a.exceptional() || b.exceptional() {
		if a.kind == Error {
			return *a
		}
		if b.kind == Error {
			return *b
		}
		return Value{}
	}
	switch {
	case op <= opGreater:
		return compare(op, a, b)
	case op <= opModulus:
		return arithmetic(op, a, b)
	}
	return bitwise(op, a, b)
}

// logical finishes && and ||: the first operand alone does not decide.
func logical(op operator, a, b *Value) Value {
	decides := op == opOr // the boolean that decides
	ta, oka := a.truth()
	tb, okb := b.truth()
	if !oka && !a.exceptional() || !okb && !b.exceptional() {
		return ErrorValue("a logical operator on something that is not a boolean")
	}
	switch {
	case oka && ta == decides:
		return BoolValue(decides)
	case a.kind == Error:
		return *a
	case okb && (oka || tb == decides):
		return BoolValue(tb)
	case okb: // undefined with a boolean that does not decide
		return Value{}
	}
	return *b
}

// subscript is list[integer] and ad[string].
func subscript(ev *evaluator, a, b Value) Value {
	if a.kind == Error {
		return a
	}
	if b.kind == Error {
		return b
	}
	if a.kind == Undefined || b.kind == Undefined {
		return Value{}
	}
	switch {
	case a.kind == List && b.kind == Int:
		i := int32(b.num) // HTCondor's index is an int, cut off
		if i < 0 || int(i) >= len(a.list.items) {
			return ErrorValue("a subscript beyond the list")
		}
		if ev.depth <= 0 {
			return ErrorValue("the evaluation nests too deep")
		}
		ev.depth--
		v := ev.attempt(a.list.items[i], a.sc)
		ev.depth++
		return v
	case a.kind == Record && b.kind == String:
		return selectByName(ev, a.sc, b.str)
	}
	return ErrorValue("a subscript of something that has none")
}

// selectByName is ad["name"]. It is an evaluation of its own, which does not know
// the attributes being evaluated, and its result no longer belongs to an ad
// (HTCondor src/classad/classad.cpp:EvaluateAttr).
func selectByName(ev *evaluator, sc *scope, name string) Value {
	n := sc.ad.find(name, hashName(name))
	if n == nil {
		return Value{}
	}
	active := ev.active
	ev.active = nil
	v := ev.attempt(n, sc)
	ev.active = active
	switch v.kind {
	case List:
		v.sc, v.off = nil, 1
	case Record:
		v.sc, v.off = outer(v.sc.ad, ev.env), 1
	}
	return v
}
