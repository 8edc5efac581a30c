package classads

import (
	"strconv"
	"strings"
)

// startsNumber reports whether the minus at pos belongs to a number: no operand
// stands before it and a digit follows.
func (l *lexer) startsNumber() bool {
	switch l.tok {
	case tokInt, tokReal, tokBool, tokString, tokUndefined, tokError, tokName, tokDot, tokCloseBox, tokCloseParen, tokCloseBrace:
		return false
	}
	rest := l.text[l.pos+1:]
	if len(rest) > 1 && rest[0] == '.' {
		rest = rest[1:]
	}
	return len(rest) > 0 && isDigit(rest[0])
}

// point reads a selection or a real that begins with its point. Two points are a selection, too, and with digits behind them a
// number which strtod takes for 0 (HTCondor src/classad/lexer.cpp:tokenizeNumber).
func (l *lexer) point() error {
	width := 1
	if l.at(l.pos+1) == '.' {
		width = 2
	}
	switch {
	case !isDigit(l.at(l.pos + width)):
		return l.emit(tokDot, width)
	case width == 1:
		return l.number()
	}
	from := l.pos
	l.pos++
	err := l.number() // ends where the digits and an exponent do
	l.from, l.real = from, 0
	return err
}

// number reads an integer or real, with its sign.
func (l *lexer) number() error {
	i := l.pos
	if l.text[i] == '-' {
		i++
	}
	first := i
	digits := func() {
		for i < len(l.text) && isDigit(l.text[i]) {
			i++
		}
	}
	digits()
	real := false
	if i < len(l.text) && l.text[i] == '.' {
		real = true
		i++
		if i >= len(l.text) || !isDigit(l.text[i]) {
			return l.fail("a digit must follow the decimal point")
		}
		digits()
	}
	if i < len(l.text) && lower(l.text[i]) == 'e' {
		real = true
		i++
		if i < len(l.text) && (l.text[i] == '+' || l.text[i] == '-') {
			i++
		}
		if i >= len(l.text) || !isDigit(l.text[i]) {
			return l.fail("the exponent has no digits")
		}
		digits()
	}
	text := l.text[l.pos:i]
	l.pos = i
	if real {
		l.tok = tokReal
		l.real = parseReal(text)
		return nil
	}
	if i-first == 1 && l.text[first] == '0' && lower(l.at(i)) == 'x' {
		return l.hexadecimal(first)
	}
	if i-first > 1 && l.text[first] == '0' {
		return l.zeroFirst(text, first)
	}
	l.tok = tokInt
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		n = 0 // out of range; HTCondor's std::from_chars leaves 0
	}
	l.num = n
	return nil
}

// zeroFirst reads an integer that begins with 0 but is not 0. HTCondor refuses it, unless it is negative: then its digits, which
// must be octal, count as decimal (src/classad/lexer.cpp:tokenizeNumber).
func (l *lexer) zeroFirst(text string, first int) error {
	if first == l.from || strings.ContainsAny(text, "89") {
		return l.fail("an integer cannot begin with 0")
	}
	l.tok = tokInt
	l.num, _ = strconv.ParseInt(text, 10, 64)
	return nil
}

// hexadecimal reads what begins with 0x, the 0 of which is at first. HTCondor refuses an integer, unless it is negative: then it
// is 0. A real has decimal digits behind the point, and perhaps an exponent, all of which strtod takes for hexadecimal digits as
// far as it can.
func (l *lexer) hexadecimal(first int) error {
	i := first + len("0x")
	for isHex(l.at(i)) {
		i++
	}
	if i == first+len("0x") {
		return l.fail("0x needs hexadecimal digits")
	}
	if l.at(i) != '.' {
		if first == l.from {
			return l.fail("an integer cannot begin with 0")
		}
		l.tok, l.num, l.pos = tokInt, 0, i
		return nil
	}
	l.pos = i
	if err := l.number(); err != nil { // the point and what follows it
		return err
	}
	if l.tok != tokReal {
		return l.fail("a digit must follow the decimal point")
	}
	end := i + 1
	for end < l.pos && isHex(l.text[end]) {
		end++
	}
	l.real = parseReal(l.text[l.from:end] + "p0")
	return nil
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= lower(c) && lower(c) <= 'f' }
