package classads

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
)

// Marshal makes an ad of a struct. An exported field becomes the attribute of
// its name, or of the name in its tag:
//
//	Memory int64  `classads:"RequestMemory"`
//	Note   string `classads:",omitempty"` // not if it is the zero value
//	Hidden int    `classads:"-"`
//
// Strings, booleans and numbers become literals, slices lists, and structs
// nested ads. As in HTCondor's attributes, a [time.Time] becomes its Unix seconds
// and a [time.Duration] its seconds. An [*Expr], [*Ad] or [Value] becomes itself.
// A nil pointer or slice sets no attribute. The fields of an embedded struct
// count as fields of the outer struct.
func Marshal(v any) (*Ad, error) {
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer && !rv.IsNil() {
		rv = rv.Elem()
	}
	if rv.Kind() != reflect.Struct {
		return nil, fmt.Errorf("a ClassAd is made of a struct, not of %T", v)
	}
	ad := NewAd()
	if err := marshalInto(ad, rv); err != nil {
		return nil, fmt.Errorf("making a ClassAd of %T: %w", v, err)
	}
	return ad, nil
}

// tagKey is the key of struct tags.
const tagKey = "classads"

// fieldTag returns the attribute of a field and whether it is left out when it
// is the zero value; an empty name means that the field has none.
func fieldTag(f reflect.StructField) (name string, omitEmpty bool) {
	tag, options, _ := strings.Cut(f.Tag.Get(tagKey), ",")
	if tag == "-" || !f.IsExported() {
		return "", false
	}
	if tag == "" {
		tag = f.Name
	}
	return tag, options == "omitempty"
}

// embedded tells a field whose own fields count as the struct's.
func embedded(f reflect.StructField) bool {
	return f.Anonymous && f.Tag.Get(tagKey) == "" && f.Type.Kind() == reflect.Struct
}

func marshalInto(ad *Ad, v reflect.Value) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if embedded(f) {
			if err := marshalInto(ad, v.Field(i)); err != nil {
				return err
			}
			continue
		}
		name, omitEmpty := fieldTag(f)
		if name == "" || omitEmpty && v.Field(i).IsZero() {
			continue
		}
		n, err := marshalValue(v.Field(i))
		if err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
		if n != nil {
			ad.set(name, n)
		}
	}
	return nil
}

// marshalValue returns nil if no attribute is to be set.
func marshalValue(v reflect.Value) (node, error) {
	switch x := v.Interface().(type) {
	case Value:
		return literalNode(x), nil
	case time.Time:
		return &literal{IntValue(x.Unix())}, nil
	case time.Duration:
		return &literal{IntValue(int64(x / time.Second))}, nil
	case *Expr:
		if x == nil {
			return nil, nil
		}
		return x.n, nil
	case *Ad:
		if x == nil {
			return nil, nil
		}
		return &adNode{x.Clone()}, nil
	}
	switch v.Kind() {
	case reflect.String:
		return stringNode(v.String()), nil
	case reflect.Bool:
		return boolNode(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &literal{IntValue(v.Int())}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Uint() > math.MaxInt64 {
			return nil, fmt.Errorf("%d does not fit in an integer of 64 bits", v.Uint())
		}
		return &literal{IntValue(int64(v.Uint()))}, nil
	case reflect.Float32, reflect.Float64:
		return &literal{RealValue(v.Float())}, nil
	case reflect.Pointer:
		if v.IsNil() {
			return nil, nil
		}
		return marshalValue(v.Elem())
	case reflect.Struct:
		ad := NewAd()
		return &adNode{ad}, marshalInto(ad, v)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			return nil, nil
		}
		l := &listNode{}
		for i := range v.Len() {
			n, err := marshalValue(v.Index(i))
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			if n == nil {
				n = undefinedNode
			}
			l.items = append(l.items, n)
		}
		return l, nil
	}
	return nil, fmt.Errorf("nothing in a ClassAd is like a %s", v.Type())
}

// Unmarshal sets the fields of the struct that v points to; see [Marshal] for
// the names. It evaluates attributes as the getters do. A field keeps its value
// if its attribute is absent or undefined. The error names every attribute that
// does not fit its field; the other fields are set.
func (a *Ad) Unmarshal(v any) error {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() || rv.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("a ClassAd is read into a pointer to a struct, not into %T", v)
	}
	if err := a.unmarshalInto(rv.Elem()); err != nil {
		return fmt.Errorf("reading a ClassAd into %T: %w", v, err)
	}
	return nil
}

func (a *Ad) unmarshalInto(v reflect.Value) error {
	var problems []error
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if embedded(f) {
			problems = append(problems, a.unmarshalInto(v.Field(i)))
			continue
		}
		name, _ := fieldTag(f)
		n := a.find(name, hashName(name))
		if name == "" || n == nil {
			continue
		}
		if f.Type == reflect.TypeFor[*Expr]() {
			v.Field(i).Set(reflect.ValueOf(&Expr{n}))
			continue
		}
		if err := unmarshalValue(v.Field(i), evalNode(n, &Env{My: a})); err != nil {
			problems = append(problems, fmt.Errorf("attribute %s: %w", name, err))
		}
	}
	return errors.Join(problems...)
}

func unmarshalValue(to reflect.Value, v Value) error {
	switch to.Interface().(type) {
	case Value:
		to.Set(reflect.ValueOf(v))
		return nil
	case time.Time:
		if t, ok := v.AbsTime(); ok {
			to.Set(reflect.ValueOf(t))
			return nil
		}
		seconds, ok := v.Number()
		if ok {
			to.Set(reflect.ValueOf(time.Unix(truncate(seconds), 0)))
			return nil
		}
	case time.Duration:
		seconds, ok := v.Number()
		if v.kind == RelTime {
			seconds, ok = v.RelTime()
		}
		if ok {
			to.SetInt(truncate(seconds * float64(time.Second)))
			return nil
		}
	case *Ad:
		if ad, ok := v.Ad(); ok {
			to.Set(reflect.ValueOf(ad))
			return nil
		}
	default:
		if done, err := unmarshalKind(to, v); done || err != nil {
			return err
		}
	}
	if v.kind == Undefined {
		return nil
	}
	return &TypeError{Want: wanted(to.Type()), Got: v.kind, Reason: v.Reason()}
}

// wanted is the kind of value that a type is made of.
func wanted(t reflect.Type) Kind {
	switch t.Kind() {
	case reflect.String:
		return String
	case reflect.Bool:
		return Bool
	case reflect.Float32, reflect.Float64:
		return Real
	case reflect.Slice, reflect.Array:
		return List
	case reflect.Pointer, reflect.Struct:
		return Record
	}
	return Int
}

// unmarshalKind sets a variable of a basic or composed type.
func unmarshalKind(to reflect.Value, v Value) (done bool, err error) {
	number, isNumber := v.Number()
	switch to.Kind() {
	case reflect.String:
		s, ok := v.Str()
		if ok {
			to.SetString(s)
		}
		return ok, nil
	case reflect.Bool:
		b, ok := v.truth()
		if ok {
			to.SetBool(b)
		}
		return ok, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if i := toInt(v); isNumber {
			if to.OverflowInt(i.num) {
				return false, fmt.Errorf("%d does not fit in %s", i.num, to.Type())
			}
			to.SetInt(i.num)
		}
		return isNumber, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if i := toInt(v); isNumber {
			if i.num < 0 || to.OverflowUint(uint64(i.num)) {
				return false, fmt.Errorf("%d does not fit in %s", i.num, to.Type())
			}
			to.SetUint(uint64(i.num))
		}
		return isNumber, nil
	case reflect.Float32, reflect.Float64:
		if isNumber {
			to.SetFloat(number)
		}
		return isNumber, nil
	case reflect.Pointer:
		if v.kind == Undefined {
			return true, nil
		}
		fresh := reflect.New(to.Type().Elem())
		if err := unmarshalValue(fresh.Elem(), v); err != nil {
			return false, err
		}
		to.Set(fresh)
		return true, nil
	case reflect.Struct:
		if v.kind != Record {
			return false, nil
		}
		return true, v.sc.ad.unmarshalInto(to)
	case reflect.Slice:
		return unmarshalList(to, v)
	}
	return false, fmt.Errorf("nothing in a ClassAd is like a %s", to.Type())
}

func unmarshalList(to reflect.Value, v Value) (bool, error) {
	items, ok := v.List()
	if !ok {
		return false, nil
	}
	s := reflect.MakeSlice(to.Type(), len(items), len(items))
	for i, item := range items {
		if err := unmarshalValue(s.Index(i), item); err != nil {
			return false, fmt.Errorf("element %d: %w", i, err)
		}
	}
	to.Set(s)
	return true, nil
}
