package classads

import (
	"strconv"
	"strings"
)

// toInt converts as int() does; if it cannot, the value is an error or undefined
// (HTCondor src/classad/value.cpp:convertValueToIntegerValue).
func toInt(v Value) Value {
	switch v.kind {
	case Undefined, Int:
		return v
	case Bool, AbsTime:
		return IntValue(v.num)
	case Real:
		return IntValue(truncate(v.float()))
	case RelTime:
		return IntValue(wholeSeconds(v))
	case String:
		if r, ok := scanReal(v.str); ok {
			return IntValue(truncate(r))
		}
	case Error:
		return v
	}
	return ErrorValue("the value cannot be converted to an integer")
}

// toReal converts as real() does (HTCondor
// src/classad/value.cpp:convertValueToRealValue).
func toReal(v Value) Value {
	switch v.kind {
	case Undefined, Real:
		return v
	case Bool, Int, AbsTime:
		return RealValue(float64(v.num))
	case RelTime:
		return RealValue(float64(wholeSeconds(v)))
	case String:
		if r, ok := scanReal(v.str); ok {
			return RealValue(r)
		}
	case Error:
		return v
	}
	return ErrorValue("the value cannot be converted to a real")
}

// toString converts as string() does (HTCondor
// src/classad/value.cpp:convertValueToStringValue).
func toString(ev *evaluator, v Value) Value {
	switch v.kind {
	case Undefined, Error, String:
		return v
	case AbsTime:
		return StringValue(string(appendAbsTime(nil, v.num, int(v.off))))
	case RelTime:
		return StringValue(string(appendRelTime(nil, float64(wholeSeconds(v)))))
	}
	s := appendValue(nil, v, printer{sorted: true})
	if !ev.spend(len(s)) {
		return Value{kind: Error}
	}
	return StringValue(string(s))
}

// scanReal reads the real at the beginning of the text, as C's strtod does, and
// reports whether there is one.
func scanReal(s string) (float64, bool) {
	s = strings.TrimLeft(s, spaces)
	i := 0
	if i < len(s) && isSign(s[i]) {
		i++
	}
	rest := s[i:]
	if len(rest) >= 3 && equalFold(rest[:3], "inf") || len(rest) >= 3 && equalFold(rest[:3], "nan") {
		r, _ := strconv.ParseFloat(s[:i+3], 64)
		return r, true
	}
	if len(rest) > 1 && rest[0] == '0' && lower(rest[1]) == 'x' {
		if r, ok := scanHex(s, i); ok {
			return r, true
		}
	}
	end, digits := i, 0
	for end < len(s) && isDigit(s[end]) {
		end++
		digits++
	}
	if end < len(s) && s[end] == '.' {
		end++
		for end < len(s) && isDigit(s[end]) {
			end++
			digits++
		}
	}
	if digits == 0 {
		return 0, false
	}
	if end < len(s) && lower(s[end]) == 'e' {
		x := end + 1
		if x < len(s) && isSign(s[x]) {
			x++
		}
		if x < len(s) && isDigit(s[x]) {
			for x < len(s) && isDigit(s[x]) {
				x++
			}
			end = x
		}
	}
	r, _ := strconv.ParseFloat(s[:end], 64)
	return r, true
}

// scanHex reads a hexadecimal real; i is where its 0x begins.
func scanHex(s string, i int) (float64, bool) {
	end, digits := i+2, 0
	for end < len(s) && isHex(s[end]) {
		end++
		digits++
	}
	if end < len(s) && s[end] == '.' {
		end++
		for end < len(s) && isHex(s[end]) {
			end++
			digits++
		}
	}
	if digits == 0 {
		return 0, false
	}
	exponent := "p0"
	mantissa := s[:end]
	if end < len(s) && lower(s[end]) == 'p' {
		x := end + 1
		if x < len(s) && isSign(s[x]) {
			x++
		}
		if x < len(s) && isDigit(s[x]) {
			for x < len(s) && isDigit(s[x]) {
				x++
			}
			exponent = s[end:x]
		}
	}
	r, _ := strconv.ParseFloat(mantissa+exponent, 64)
	return r, true
}

// wholeSeconds is the integer that HTCondor makes of a relative time
// (src/classad/classad/value.h:IsRelativeTimeValue).
func wholeSeconds(v Value) int64 { return int64(truncate32(v.float())) }
