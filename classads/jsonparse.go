package classads

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON reads an ad written as JSON (HTCondor src/classad/jsonSource.cpp).
func (p Parser) JSON(text string) (*Ad, error) {
	s := jsonParse{parse{Parser: p.bounded(), lexer: lexer{text: text}}}
	n, err := s.document(func() (node, error) {
		if s.peek() != '{' {
			return nil, s.wrong("expected {")
		}
		ad, err := s.ad()
		return &adNode{ad}, err
	})
	if err != nil {
		return nil, fmt.Errorf("ClassAd in JSON: %w", err)
	}
	return n.(*adNode).ad, nil
}

// jsonValue reads the value of an attribute written as JSON.
func (p Parser) jsonValue(text string) (node, error) {
	s := jsonParse{parse{Parser: p.bounded(), lexer: lexer{text: text}}}
	n, err := s.document(s.value)
	if err != nil {
		return nil, fmt.Errorf("ClassAd expression in JSON: %w", err)
	}
	return n, nil
}

// jsonParse reads JSON; it uses only the text and the position of the lexer.
type jsonParse struct{ parse }

// document reads the whole text with a function for its kind.
func (s *jsonParse) document(read func() (node, error)) (node, error) {
	if len(s.text) > s.MaxText {
		return nil, fmt.Errorf("text of %d bytes is longer than the %d allowed", len(s.text), s.MaxText)
	}
	n, err := read()
	if err != nil {
		return nil, err
	}
	if s.peek() != 0 || s.pos < len(s.text) {
		return nil, s.wrong("expected the end")
	}
	return n, nil
}

func (s *jsonParse) wrong(what string) error {
	s.from = s.pos
	return s.fail(what)
}

// peek returns the next byte that is not white space, 0 at the end.
func (s *jsonParse) peek() byte {
	for s.pos < len(s.text) && isSpace(s.text[s.pos]) {
		s.pos++
	}
	return s.at(s.pos)
}

func (s *jsonParse) accept(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

// ad reads an object; the next byte is its brace.
func (s *jsonParse) ad() (*Ad, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	s.pos++
	ad := NewAd()
	if s.accept('}') {
		return ad, nil
	}
	for {
		if s.peek() != '"' {
			return nil, s.wrong("expected a string in quotes")
		}
		name, _, err := s.string()
		if err != nil {
			return nil, err
		}
		if name == "" {
			return nil, s.wrong("an attribute name cannot be empty")
		}
		if !s.accept(':') {
			return nil, s.wrong("expected :")
		}
		n, err := s.value()
		if err != nil {
			return nil, err
		}
		ad.set(name, n)
		if s.accept('}') {
			return ad, nil
		}
		if !s.accept(',') {
			return nil, s.wrong("expected , or }")
		}
	}
}

func (s *jsonParse) value() (node, error) {
	if err := s.made(0); err != nil {
		return nil, err
	}
	switch c := s.peek(); {
	case c == '{':
		ad, err := s.ad()
		return &adNode{ad}, err
	case c == '[':
		return s.list()
	case c == '"':
		text, isExpr, err := s.string()
		if err != nil {
			return nil, err
		}
		const mark = "/Expr(" // in any case
		if isExpr && len(text) > len(mark) && equalFold(text[:len(mark)], mark) {
			if inner, ok := strings.CutSuffix(text[len(mark):], ")/"); ok {
				n, err := s.Parser.parse(inner, false)
				if err != nil {
					return nil, s.wrong("in an expression: " + err.Error())
				}
				return n, nil
			}
		}
		return &literal{StringValue(text)}, nil
	case c == '-' || c == '.' || isDigit(c):
		v, err := s.jsonNumber()
		return &literal{v}, err
	}
	for word, n := range map[string]node{"true": trueNode, "false": falseNode, "null": undefinedNode} {
		if strings.HasPrefix(s.text[s.pos:], word) {
			s.pos += len(word)
			return n, nil
		}
	}
	return nil, s.wrong("expected a value")
}

// jsonNumber reads a number as the language has it, and so .5 and -01, which are none in JSON (HTCondor src/classad/lexer.cpp:
// tokenizeNumber). An integer that is too large is a real.
func (s *jsonParse) jsonNumber() (Value, error) {
	from := s.pos
	s.from, s.tok = from, tokColon
	switch c := s.text[from]; {
	case c == '.':
		if err := s.point(); err != nil {
			return Value{}, err
		}
	case c == '-' && !s.startsNumber():
		return Value{}, s.wrong("not a number")
	default:
		if err := s.number(); err != nil {
			return Value{}, err
		}
	}
	switch s.tok {
	case tokReal:
		return RealValue(s.real), nil
	case tokInt:
		text := s.text[from:s.pos]
		if _, err := strconv.ParseInt(text, 10, 64); errors.Is(err, strconv.ErrRange) {
			return RealValue(parseReal(text)), nil
		}
		return IntValue(s.num), nil
	}
	return Value{}, s.wrong("not a number")
}

func (s *jsonParse) list() (node, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	s.pos++
	l := &listNode{}
	if s.accept(']') {
		return l, nil
	}
	for {
		n, err := s.value()
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, n)
		if s.accept(']') {
			return l, nil
		}
		if !s.accept(',') {
			return nil, s.wrong("expected , or ]")
		}
	}
}

// string reads a string. It may stand for an expression if it begins and ends
// with \/, which no other string that HTCondor writes does.
func (s *jsonParse) string() (text string, mayBeExpr bool, err error) {
	s.pos++
	start := s.pos
	for s.pos < len(s.text) && s.text[s.pos] != '"' {
		if s.text[s.pos] == '\\' {
			s.pos++
		}
		s.pos++
	}
	if s.pos >= len(s.text) {
		return "", false, s.wrong("string does not end")
	}
	raw := s.text[start:s.pos]
	s.pos++
	text, ok := unescapeJSON(raw)
	if !ok {
		return "", false, s.wrong("a string with a wrong escape or NUL")
	}
	return text, strings.HasPrefix(raw, `\/`) && strings.HasSuffix(raw, `\/`), nil
}

func unescapeJSON(raw string) (string, bool) {
	if strings.IndexByte(raw, 0) >= 0 {
		return "", false
	}
	if strings.IndexByte(raw, '\\') < 0 {
		return raw, true
	}
	b := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			b = append(b, raw[i])
			continue
		}
		i++
		switch c := raw[i]; c {
		case 'u':
			r, ok := jsonRune(raw[i+1:])
			if !ok || r == 0 {
				return "", false
			}
			i += 4
			if utf16.IsSurrogate(r) && strings.HasPrefix(raw[i+1:], `\u`) {
				low, _ := jsonRune(raw[i+3:])
				if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
					r = both
					i += 6
				}
			}
			b = utf8.AppendRune(b, r)
		default:
			if k := strings.IndexByte("bfnrt", c); k >= 0 {
				c = "\b\f\n\r\t"[k]
			}
			b = append(b, c)
		}
	}
	return string(b), true
}

func jsonRune(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:4], 16, 16)
	return rune(n), err == nil
}
