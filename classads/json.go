package classads

import (
	"encoding/hex"
	"math"
)

// FormatJSON returns the ad as condor_q -json writes it, on several lines. A
// value that JSON does not have, such as an expression, is a string
// "\/Expr(...)\/" (HTCondor src/classad/jsonSink.cpp).
func (a *Ad) FormatJSON() string { return string(jsonPrinter{}.ad(nil, a, 0)) }

// FormatJSONLine returns the ad as JSON on one line.
func (a *Ad) FormatJSONLine() string { return string(jsonPrinter{oneLine: true}.ad(nil, a, 0)) }

// MarshalJSON makes [encoding/json] write the ad as [Ad.FormatJSONLine] does.
// As HTCondor does, it copies the bytes of strings, also where they are not
// valid UTF-8; some readers of JSON refuse that.
func (a Ad) MarshalJSON() ([]byte, error) { return jsonPrinter{oneLine: true}.ad(nil, &a, 0), nil }

// UnmarshalJSON makes [encoding/json] read an ad as [ParseJSON] does, within the
// default limits of the parser. It replaces all that the ad had before; after an
// error the ad is unchanged. A string is an expression only if its slashes are
// escaped, "\/Expr(...)\/": programs that read JSON and write it again often
// drop these escapes, and so turn expressions into strings.
func (a *Ad) UnmarshalJSON(text []byte) error {
	if string(text) == "null" { // by convention nothing happens
		return nil
	}
	ad, err := ParseJSON(string(text))
	if err != nil {
		return err
	}
	*a = *ad
	return nil
}

// MarshalJSON makes [encoding/json] write the expression as it does an
// attribute of an ad.
func (e Expr) MarshalJSON() ([]byte, error) {
	return jsonPrinter{oneLine: true}.node(nil, e.tree(), 0), nil
}

// UnmarshalJSON makes [encoding/json] read an expression as it does an
// attribute of an ad. Ads that had the old expression keep it.
func (e *Expr) UnmarshalJSON(text []byte) error {
	n, err := Parser{}.jsonValue(string(text))
	if err != nil {
		return err
	}
	e.n = n
	return nil
}

// MarshalJSON makes [encoding/json] write the value as it does an attribute
// with that value. The elements of a list are not evaluated.
func (v Value) MarshalJSON() ([]byte, error) {
	return jsonPrinter{oneLine: true}.value(nil, v), nil
}

type jsonPrinter struct {
	oneLine bool
	sorted  bool // attributes in HTCondor's order
}

const jsonIndent = 2

func (p jsonPrinter) line(dst []byte, depth int) []byte {
	if p.oneLine {
		return dst
	}
	dst = append(dst, '\n')
	for range depth * jsonIndent {
		dst = append(dst, ' ')
	}
	return dst
}

func (p jsonPrinter) ad(dst []byte, a *Ad, depth int) []byte {
	if p.sorted {
		a = a.sorted()
	}
	dst = append(dst, '{')
	for i := range a.attrs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = p.line(dst, depth+1)
		dst = append(dst, '"')
		dst = appendJSONString(dst, a.attrs[i].name)
		dst = append(dst, `": `...)
		dst = p.node(dst, a.attrs[i].n, depth+1)
	}
	return append(p.line(dst, depth), '}')
}

func (p jsonPrinter) node(dst []byte, n node, depth int) []byte {
	switch n := n.(type) {
	case *literal:
		return p.value(dst, n.Value)
	case *relTimeNode:
		return p.value(dst, RealValue(n.seconds))
	case *adNode:
		return p.ad(dst, n.ad, depth)
	case *listNode:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = p.line(dst, depth+1)
			dst = p.node(dst, item, depth+1)
		}
		return append(p.line(dst, depth), ']')
	}
	return appendJSONExpr(dst, n.append(nil, printer{sorted: p.sorted}))
}

// value writes a constant.
func (p jsonPrinter) value(dst []byte, v Value) []byte {
	switch v.kind {
	case Undefined:
		return append(dst, "null"...)
	case Bool, Int:
		return appendValue(dst, v, printer{})
	case String:
		dst = append(dst, '"')
		dst = appendJSONString(dst, v.str)
		return append(dst, '"')
	case Real:
		if r := v.float(); !math.IsNaN(r) && !math.IsInf(r, 0) {
			return appendReal(dst, r, true)
		}
	case List:
		return p.node(dst, v.list, 0)
	case Record:
		return p.ad(dst, v.sc.ad, 0)
	}
	return appendJSONExpr(dst, appendValue(nil, v, printer{}))
}

func appendJSONExpr(dst, text []byte) []byte {
	dst = append(dst, `"\/Expr(`...)
	dst = appendJSONString(dst, string(text))
	return append(dst, `)\/"`...)
}

func appendJSONString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c < ' ':
			dst = append(dst, `\u00`...)
			dst = append(dst, upperHex(c)...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func upperHex(c byte) string {
	b := []byte(hex.EncodeToString([]byte{c}))
	for i := range b {
		b[i] = upper(b[i])
	}
	return string(b)
}

// ParseJSON reads an ad written as JSON, as [Ad.FormatJSON] and the tools with
// -json write it. A string "\/Expr(...)\/" becomes the expression in it.
func ParseJSON(text string) (*Ad, error) { return Parser{}.JSON(text) }
