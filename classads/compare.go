package classads

// identical is the operator is (=?=), and isnt (=!=): true when type and value
// are the same. Lists and ads have no identity: comparing two is an error.
func identical(op operator, a, b *Value) Value {
	same := a.kind == b.kind
	if same {
		switch a.kind {
		case Bool, Int:
			same = a.num == b.num
		case Real, RelTime:
			same = a.float() == b.float()
		case String:
			same = a.str == b.str
		case AbsTime:
			same = a.num == b.num && a.off == b.off
		case List, Record:
			if a.off == b.off {
				return ErrorValue("lists and ads cannot be compared")
			}
			same = false
		}
	}
	return BoolValue(same == (op == opIs))
}

// compare is the comparison of two values that are neither undefined nor
// error (HTCondor src/classad/operators.cpp:doComparison).
func compare(op operator, a, b *Value) Value {
	switch {
	case a.kind >= List || b.kind >= List:
		return ErrorValue("lists and ads cannot be compared")
	case a.kind == String && b.kind == String:
		return ordered(op, compareFold(a.str, b.str))
	case a.kind == String || b.kind == String:
		return ErrorValue("a string can only be compared with a string")
	case a.kind == AbsTime && b.kind == AbsTime:
		return ordered(op, order(a.num, b.num))
	case a.kind == RelTime && b.kind == RelTime:
		return orderedReal(op, a.float(), b.float())
	case a.kind >= AbsTime || b.kind >= AbsTime:
		return ErrorValue("a time can only be compared with a time of its kind")
	case a.kind == Real || b.kind == Real:
		x, _ := a.Number()
		y, _ := b.Number()
		return orderedReal(op, x, y)
	}
	return ordered(op, order(a.num, b.num))
}

func order(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func ordered(op operator, c int) Value {
	switch op {
	case opLess:
		return BoolValue(c < 0)
	case opLessEqual:
		return BoolValue(c <= 0)
	case opEqual:
		return BoolValue(c == 0)
	case opNotEqual:
		return BoolValue(c != 0)
	case opGreaterEqual:
		return BoolValue(c >= 0)
	}
	return BoolValue(c > 0)
}

// orderedReal is separate from ordered because NaN is neither less nor equal nor
// greater.
func orderedReal(op operator, a, b float64) Value {
	switch op {
	case opLess:
		return BoolValue(a < b)
	case opLessEqual:
		return BoolValue(a <= b)
	case opEqual:
		return BoolValue(a == b)
	case opNotEqual:
		return BoolValue(a != b)
	case opGreaterEqual:
		return BoolValue(a >= b)
	}
	return BoolValue(a > b)
}

// sign turns a comparison result into -1, 0 or 1.
func sign(c int) int64 { return int64(order(int64(c), 0)) }
