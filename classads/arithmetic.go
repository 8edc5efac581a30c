package classads

import "math"

// arithmetic applies + - * / % to values that are neither undefined nor error.
func arithmetic(op operator, a, b *Value) Value {
	if !calculable(a) || !calculable(b) {
		return ErrorValue("arithmetic with something that is not a number")
	}
	switch {
	case a.kind >= AbsTime || b.kind >= AbsTime:
		return timeArithmetic(op, a, b)
	case a.kind == Real || b.kind == Real:
		x, _ := a.Number()
		y, _ := b.Number()
		return realArithmetic(op, x, y)
	}
	return intArithmetic(op, a.num, b.num)
}

func calculable(v *Value) bool {
	switch v.kind {
	case Bool, Int, Real, AbsTime, RelTime:
		return true
	}
	return false
}

// intArithmetic wraps around on overflow.
func intArithmetic(op operator, a, b int64) Value {
	switch op {
	case opAdd:
		return IntValue(a + b)
	case opSubtract:
		return IntValue(a - b)
	case opMultiply:
		return IntValue(a * b)
	}
	if b == 0 {
		return ErrorValue("division by zero")
	}
	if a == math.MinInt64 && b == -1 {
		if op == opDivide {
			return IntValue(math.MaxInt64) // as HTCondor, rather than trap
		}
		return IntValue(0)
	}
	if op == opDivide {
		return IntValue(a / b)
	}
	return IntValue(a % b)
}

// realArithmetic has no %, and a positive infinite result is an error; a
// negative one is not (HTCondor src/classad/operators.cpp:doRealArithmetic).
func realArithmetic(op operator, a, b float64) Value {
	var r float64
	switch op {
	case opAdd:
		r = a + b
	case opSubtract:
		r = a - b
	case opMultiply:
		r = a * b
	case opDivide:
		r = a / b
	default:
		return ErrorValue("% with a real")
	}
	if math.IsInf(r, 1) {
		return ErrorValue("the result is infinite")
	}
	return RealValue(r)
}

func timeArithmetic(op operator, a, b *Value) Value {
	switch {
	case op == opAdd && a.kind == AbsTime && b.kind == RelTime:
		return AbsTimeValue(a.num+int64(truncate32(b.float())), int(a.off))
	case op == opAdd && a.kind == RelTime && b.kind == AbsTime:
		return AbsTimeValue(b.num+int64(truncate32(a.float())), int(b.off))
	case op == opAdd && a.kind == RelTime && b.kind == RelTime:
		return RelTimeValue(a.float() + b.float())
	case op == opSubtract && a.kind == AbsTime && b.kind == AbsTime:
		return RelTimeValue(float64(a.num - b.num))
	case op == opSubtract && a.kind == AbsTime && b.kind == RelTime:
		return AbsTimeValue(a.num-int64(truncate32(b.float())), int(a.off))
	case op == opSubtract && a.kind == RelTime && b.kind == RelTime:
		return RelTimeValue(a.float() - b.float())
	}
	if op == opMultiply && b.kind == RelTime {
		a, b = b, a
	}
	if a.kind == RelTime && (b.kind == Int || b.kind == Real) {
		n, _ := b.Number()
		switch op {
		case opMultiply:
			return RelTimeValue(a.float() * n)
		case opDivide:
			return RelTimeValue(a.float() / n)
		}
	}
	return ErrorValue("arithmetic that times do not have")
}

// bitwise applies a bit operator; a shift uses the low six bits of its count,
// as x86-64 does.
func bitwise(op operator, a, b *Value) Value {
	if a.kind != Int || b.kind != Int {
		return ErrorValue("a bit operator on something that is not an integer")
	}
	x, y := a.num, b.num
	count := uint64(y) & 63
	switch op {
	case opBitOr:
		return IntValue(x | y)
	case opBitAnd:
		return IntValue(x & y)
	case opBitXor:
		return IntValue(x ^ y)
	case opShiftLeft:
		return IntValue(x << count)
	case opShiftRightUnsigned:
		if x < 0 {
			return IntValue(int64(uint64(x)>>1) >> (uint64(y-1) & 63))
		}
	case opShiftRight:
		if x < 0 {
			return IntValue(x >> min(max(y, 0), 64))
		}
	}
	return IntValue(x >> count)
}

// truncate32 converts as C++ on x86-64 converts a double to int.
func truncate32(r float64) int32 {
	if math.IsNaN(r) || r >= 1<<31 || r <= -1<<31-1 {
		return math.MinInt32
	}
	return int32(r)
}
