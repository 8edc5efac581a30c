package classads

import (
	"math"
	"time"
)

// Kind is the type of a [Value].
type Kind uint8

// The kinds of values. The zero value of [Value] is undefined.
const (
	Undefined Kind = iota // the attribute does not exist
	Error                 // the operation has no meaning
	Bool
	Int     // 64 bit signed
	Real    // IEEE 754 double
	String  // bytes without NUL
	AbsTime // a moment, with the offset from UTC it is shown in
	RelTime // a span of seconds
	List
	Record // a nested ad
)

var kindNames = [...]string{"undefined", "error", "boolean", "integer", "real", "string", "absolute time", "relative time", "list", "ClassAd"}

// String returns the name of the kind, for messages.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown kind"
}

// Value is the result of an evaluation. The zero value is undefined.
//
// A value of kind List or Record refers to the ads that it came from: read it
// before you change one of them.
type Value struct {
	kind Kind
	off  int32  // AbsTime: seconds east of UTC
	num  int64  // Bool, Int, AbsTime (Unix seconds); bits of Real, RelTime
	str  string // String; the reason of an Error
	list *listNode
	sc   *scope // List: where elements are evaluated; Record: the ad itself
}

// UndefinedValue returns undefined.
func UndefinedValue() Value { return Value{} }

// ErrorValue returns an error value. The reason is for people: comparisons and
// [Value.String] ignore it.
func ErrorValue(reason string) Value { return Value{kind: Error, str: reason} }

// BoolValue returns a boolean.
func BoolValue(b bool) Value {
	if b {
		return Value{kind: Bool, num: 1}
	}
	return Value{kind: Bool}
}

// IntValue returns an integer.
func IntValue(i int64) Value { return Value{kind: Int, num: i} }

// RealValue returns a real.
func RealValue(r float64) Value { return Value{kind: Real, num: int64(math.Float64bits(r))} }

// StringValue returns a string.
func StringValue(s string) Value { return Value{kind: String, str: s} }

// AbsTimeValue returns an absolute time: Unix seconds, and the offset of the
// zone in which it is shown, in seconds east of UTC.
func AbsTimeValue(unix int64, offset int) Value {
	return Value{kind: AbsTime, num: unix, off: int32(offset)}
}

// RelTimeValue returns a span of seconds.
func RelTimeValue(seconds float64) Value {
	return Value{kind: RelTime, num: int64(math.Float64bits(seconds))}
}

// Kind returns the type of the value.
func (v Value) Kind() Kind { return v.kind }

// Reason returns why a value is an error, if that is known; an empty string for
// any other kind.
func (v Value) Reason() string {
	if v.kind != Error {
		return ""
	}
	return v.str
}

// Bool returns the boolean; false for any other kind.
func (v Value) Bool() (b, ok bool) { return v.num != 0, v.kind == Bool }

// Int returns the integer; false for any other kind.
func (v Value) Int() (int64, bool) { return v.num, v.kind == Int }

// Real returns the real; false for any other kind.
func (v Value) Real() (float64, bool) { return v.float(), v.kind == Real }

// Str returns the string; false for any other kind.
func (v Value) Str() (string, bool) {
	if v.kind != String {
		return "", false
	}
	return v.str, true
}

// AbsTime returns the moment in the zone it is shown in; false for any other
// kind.
func (v Value) AbsTime() (time.Time, bool) {
	if v.kind != AbsTime {
		return time.Time{}, false
	}
	return time.Unix(v.num, 0).In(time.FixedZone("", int(v.off))), true
}

// RelTime returns the span in seconds; false for any other kind.
func (v Value) RelTime() (seconds float64, ok bool) { return v.float(), v.kind == RelTime }

// Number returns an integer, real or boolean as a real; false for any other
// kind.
func (v Value) Number() (float64, bool) {
	switch v.kind {
	case Int, Bool:
		return float64(v.num), true
	case Real:
		return v.float(), true
	}
	return 0, false
}

// Len returns the number of elements of a list or attributes of an ad.
func (v Value) Len() int {
	switch v.kind {
	case List:
		return len(v.list.items)
	case Record:
		return v.sc.ad.Len()
	}
	return 0
}

// List returns the elements of a list, each evaluated in the scope the list
// was written in; false for any other kind.
func (v Value) List() ([]Value, bool) {
	if v.kind != List {
		return nil, false
	}
	out := make([]Value, len(v.list.items))
	for i, n := range v.list.items {
		out[i] = evalIn(n, v.sc)
	}
	return out, true
}

// Exprs returns the elements of a list as they are written; false for any
// other kind.
func (v Value) Exprs() ([]*Expr, bool) {
	if v.kind != List {
		return nil, false
	}
	return exprs(v.list.items), true
}

// Ad returns a copy of a nested ad; false for any other kind. Attributes of
// the copy that refer to the enclosing ad are undefined in it.
func (v Value) Ad() (*Ad, bool) {
	if v.kind != Record {
		return nil, false
	}
	return v.sc.ad.Clone(), true
}

// String returns the value as an expression in the new syntax, as
// classad_eval prints it.
func (v Value) String() string { return string(appendValue(nil, v, printer{})) }

func (v Value) float() float64 { return math.Float64frombits(uint64(v.num)) }
