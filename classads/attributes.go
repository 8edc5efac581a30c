package classads

import (
	"errors"
	"fmt"
)

// ErrAbsent is the error of a getter (see [errors.Is]) if the ad does not have
// the attribute.
var ErrAbsent = errors.New("no such attribute")

// ErrUndefined is the error of a getter (see [errors.Is]) if the attribute
// evaluates to undefined.
var ErrUndefined = errors.New("value is undefined")

// TypeError is the error of a getter (see [errors.As]) if the attribute
// evaluates to another type of value than the getter returns.
type TypeError struct {
	Want, Got Kind
	Reason    string // why Got is Error, where known
}

func (e *TypeError) Error() string {
	if e.Got == Error && e.Reason != "" {
		return fmt.Sprintf("want %s, evaluation is an error: %s", e.Want, e.Reason)
	}
	return fmt.Sprintf("want %s, have %s", e.Want, e.Got)
}

// SetString sets an attribute to a string. A string cannot contain NUL:
// SetString cuts it there, as C++ daemons do when they receive it.
func (a *Ad) SetString(name, v string) { a.set(name, stringNode(v)) }

// SetInt sets an attribute to an integer.
func (a *Ad) SetInt(name string, v int64) { a.set(name, &literal{IntValue(v)}) }

// SetReal sets an attribute to a real.
func (a *Ad) SetReal(name string, v float64) { a.set(name, &literal{RealValue(v)}) }

// SetBool sets an attribute to a boolean.
func (a *Ad) SetBool(name string, v bool) { a.set(name, boolNode(v)) }

// SetAd sets an attribute to a copy of an ad.
func (a *Ad) SetAd(name string, v *Ad) { a.set(name, &adNode{v.Clone()}) }

// SetList sets an attribute to a list.
func (a *Ad) SetList(name string, items ...*Expr) { a.set(name, ListExpr(items...).n) }

// SetExpr parses text as an expression of the old syntax and sets an attribute
// to it. If text is wrong, the ad stays as it was.
func (a *Ad) SetExpr(name, text string) error {
	e, err := ParseOldExpr(text)
	if err != nil {
		return fmt.Errorf("attribute %s: %w", name, err)
	}
	a.set(name, e.n)
	return nil
}

// get evaluates an attribute for a getter.
func (a *Ad) get(name string, want Kind) (Value, error) {
	n := a.find(name, hashName(name))
	if n == nil {
		return Value{}, fmt.Errorf("attribute %s: %w", name, ErrAbsent)
	}
	var v Value
	if l, ok := n.(*literal); ok {
		v = l.Value
	} else {
		v = evalNode(n, &Env{My: a})
	}
	switch v.kind {
	case Undefined:
		return v, fmt.Errorf("attribute %s: %w", name, ErrUndefined)
	case want:
		return v, nil
	}
	if numeric(want) && numeric(v.kind) {
		return v, nil
	}
	return v, fmt.Errorf("attribute %s: %w", name, &TypeError{Want: want, Got: v.kind, Reason: v.Reason()})
}

func numeric(k Kind) bool { return k == Int || k == Real || k == Bool }

// GetString evaluates an attribute that must be a string.
//
// All getters evaluate with the ad as MY and without TARGET. Their error is
// [ErrAbsent], [ErrUndefined] or a [*TypeError], with the attribute's name.
func (a *Ad) GetString(name string) (string, error) {
	v, err := a.get(name, String)
	if err != nil {
		return "", err
	}
	return v.str, nil
}

// GetInt evaluates an attribute that must be a number or a boolean. A real is
// rounded towards zero, true is 1 (HTCondor src/classad/value.cpp:IsNumber).
func (a *Ad) GetInt(name string) (int64, error) {
	v, err := a.get(name, Int)
	if err != nil {
		return 0, err
	}
	if v.kind == Real {
		return truncate(v.float()), nil
	}
	return v.num, nil
}

// GetReal evaluates an attribute that must be a number or a boolean.
func (a *Ad) GetReal(name string) (float64, error) {
	v, err := a.get(name, Real)
	if err != nil {
		return 0, err
	}
	r, _ := v.Number()
	return r, nil
}

// GetBool evaluates an attribute that must be a boolean or a number. A number is
// true unless it is 0 (HTCondor src/classad/value.cpp:IsBooleanValueEquiv).
func (a *Ad) GetBool(name string) (bool, error) {
	v, err := a.get(name, Bool)
	if err != nil {
		return false, err
	}
	b, _ := v.truth()
	return b, nil
}

// GetAd evaluates an attribute that must be a nested ad and returns a copy.
func (a *Ad) GetAd(name string) (*Ad, error) {
	v, err := a.get(name, Record)
	if err != nil {
		return nil, err
	}
	ad, _ := v.Ad()
	return ad, nil
}

// GetList evaluates an attribute that must be a list, and the elements of the
// list.
func (a *Ad) GetList(name string) ([]Value, error) {
	v, err := a.get(name, List)
	if err != nil {
		return nil, err
	}
	l, _ := v.List()
	return l, nil
}

// StringOr returns what GetString does, or def if that is an error.
func (a *Ad) StringOr(name, def string) string {
	if v, err := a.GetString(name); err == nil {
		return v
	}
	return def
}

// IntOr returns what GetInt does, or def if that is an error.
func (a *Ad) IntOr(name string, def int64) int64 {
	if v, err := a.GetInt(name); err == nil {
		return v
	}
	return def
}

// RealOr returns what GetReal does, or def if that is an error.
func (a *Ad) RealOr(name string, def float64) float64 {
	if v, err := a.GetReal(name); err == nil {
		return v
	}
	return def
}

// BoolOr returns what GetBool does, or def if that is an error.
func (a *Ad) BoolOr(name string, def bool) bool {
	if v, err := a.GetBool(name); err == nil {
		return v
	}
	return def
}
