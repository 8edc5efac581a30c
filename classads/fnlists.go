package classads

const listFamily = "lists"

// listFunctions work on lists. The elements are evaluated where the function
// is called, not where the list was written, as HTCondor does
// (src/classad/fnCall.cpp).
var listFunctions = []builtin{
	{name: "member", family: listFamily, usage: "member(value, list)",
		summary: "true if an element == value", min: 2, max: 2, variant: int(opEqual), eval: fnMember},
	{name: "identicalMember", family: listFamily, usage: "identicalMember(value, list)",
		summary: "true if an element =?= value", min: 2, max: 2, variant: int(opIs), eval: fnMember},
	{name: "anyCompare", family: listFamily, usage: "anyCompare(operator, list, value)",
		summary: "true if the comparison holds for an element", min: 3, max: 3, variant: 0, eval: fnListCompare},
	{name: "allCompare", family: listFamily, usage: "allCompare(operator, list, value)",
		summary: "true if the comparison holds for every element", min: 3, max: 3, variant: 1, eval: fnListCompare},
	{name: "size", family: listFamily, usage: "size(list | ad | string)",
		summary: "number of elements, attributes or bytes", min: 1, max: 1, eval: fnSize},
	{name: "sum", family: listFamily, usage: "sum(list)",
		summary: "sum of the numbers, 0 for an empty list", min: 1, max: 1, variant: 0, eval: fnSum},
	{name: "avg", family: listFamily, usage: "avg(list)",
		summary: "average of the numbers as a real, 0 for an empty list", min: 1, max: 1, variant: 1, eval: fnSum},
	{name: "min", family: listFamily, usage: "min(list)",
		summary: "least number, undefined for an empty list", min: 1, max: 1, variant: int(opLess), eval: fnBound},
	{name: "max", family: listFamily, usage: "max(list)",
		summary: "greatest number, undefined for an empty list", min: 1, max: 1, variant: int(opGreater), eval: fnBound},
}

func fnMember(ev *evaluator, sc *scope, c *call) Value {
	op := operator(c.fn.variant)
	v := c.args[0].eval(ev, sc)
	l := c.args[1].eval(ev, sc)
	if l.kind == Undefined || op == opEqual && v.kind == Undefined {
		return Value{}
	}
	if l.kind != List || v.kind >= List {
		return ErrorValue("member: the second argument must be a list, the first none")
	}
	if op == opEqual && v.kind == Error {
		return v
	}
	inside := within(sc, l.sc)
	for _, n := range l.list.items {
		e := n.eval(ev, inside)
		if ev.failed {
			return Value{kind: Error}
		}
		if r := operate2(op, &e, &v); r.kind == Bool && r.num != 0 {
			return r
		}
	}
	return BoolValue(false)
}

var comparisons = map[string]operator{
	"<": opLess, "<=": opLessEqual, "!=": opNotEqual, "==": opEqual,
	">": opGreater, ">=": opGreaterEqual, "is": opIs, "isnt": opIsnt,
}

func fnListCompare(ev *evaluator, sc *scope, c *call) Value {
	all := c.fn.variant != 0
	name := c.args[0].eval(ev, sc)
	if name.kind == Undefined {
		return name
	}
	op, ok := comparisons[name.str]
	if name.kind != String || !ok {
		return ErrorValue(c.fn.name + ": the first argument must be a comparison operator")
	}
	l := c.args[1].eval(ev, sc)
	if l.kind == Undefined {
		return l
	}
	if l.kind != List {
		return ErrorValue(c.fn.name + ": the second argument must be a list")
	}
	v := c.args[2].eval(ev, sc)
	inside := within(sc, l.sc)
	for _, n := range l.list.items {
		e := n.eval(ev, inside)
		if ev.failed {
			return Value{kind: Error}
		}
		r := operate2(op, &e, &v)
		switch {
		case r.kind == Undefined:
			// HTCondor stops here; for anyCompare too.
			return BoolValue(false)
		case r.kind != Bool:
			return r
		case r.num != 0 != all:
			return BoolValue(!all)
		}
	}
	return BoolValue(all)
}

func fnSize(ev *evaluator, sc *scope, c *call) Value {
	switch v := c.args[0].eval(ev, sc); v.kind {
	case Undefined:
		return v
	case List, Record:
		return IntValue(int64(v.Len()))
	case String:
		return IntValue(int64(len(v.str)))
	}
	return ErrorValue("size: the argument must be a list, an ad or a string")
}

// numbers evaluates a list of numbers and calls yield for each that is not
// undefined. A value other than nil ends the function.
func numbers(ev *evaluator, sc *scope, c *call, yield func(Value)) *Value {
	l := c.args[0].eval(ev, sc)
	switch l.kind {
	case List:
	case Undefined:
		return &l
	default:
		e := ErrorValue(c.fn.name + ": the argument must be a list")
		return &e
	}
	inside := within(sc, l.sc)
	for _, n := range l.list.items {
		v := n.eval(ev, inside)
		if ev.failed {
			return &v
		}
		if v.kind == Undefined {
			continue
		}
		if v.kind != Bool && v.kind != Int && v.kind != Real {
			e := ErrorValue(c.fn.name + ": an element is not a number")
			return &e
		}
		yield(v)
	}
	return nil
}

func fnSum(ev *evaluator, sc *scope, c *call) Value {
	total, count := IntValue(0), 0
	if end := numbers(ev, sc, c, func(v Value) {
		if count++; count == 1 {
			total = v
			return
		}
		total = operate2(opAdd, &total, &v)
	}); end != nil {
		return *end
	}
	if c.fn.variant != 0 && count > 0 {
		n := RealValue(float64(count))
		return operate2(opDivide, &total, &n)
	}
	return total
}

// fnBound converts the numbers it compares to one kind, and what it yields is
// converted (HTCondor src/classad/fnCall.cpp:minMax).
func fnBound(ev *evaluator, sc *scope, c *call) Value {
	var bound Value
	if end := numbers(ev, sc, c, func(v Value) {
		if bound.kind == Undefined {
			bound = v
			return
		}
		v, bound = alike(v, bound)
		if compare(operator(c.fn.variant), &v, &bound).num != 0 {
			bound = v
		}
	}); end != nil {
		return *end
	}
	return bound
}

// alike converts numbers to integers or, if one is a real, to reals.
func alike(a, b Value) (Value, Value) {
	if a.kind == Real || b.kind == Real {
		x, _ := a.Number()
		y, _ := b.Number()
		return RealValue(x), RealValue(y)
	}
	return IntValue(a.num), IntValue(b.num)
}
