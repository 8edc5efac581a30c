package classads

import (
	"strconv"
	"strings"
)

// token is the kind of a lexical element.
type token uint8

const (
	tokEnd token = iota
	tokInt
	tokReal
	tokBool
	tokString
	tokUndefined
	tokError
	tokName
	tokDot
	tokOpenBox
	tokCloseBox
	tokOpenParen
	tokCloseParen
	tokOpenBrace
	tokCloseBrace
	tokAssign
	tokQuestion
	tokColon
	tokSemicolon
	tokComma
	tokOperator // any other operator; lexer.op tells which
)

// lexer cuts text into tokens (HTCondor src/classad/lexer.cpp). The current
// token is tok with its value in str, num, real or op.
type lexer struct {
	text string
	pos  int // after the current token
	from int // where the current token begins
	old  bool

	tok  token
	op   operator
	str  string
	num  int64
	real float64
}

// next reads a token.
func (l *lexer) next() error {
	if err := l.skipSpace(); err != nil {
		return err
	}
	l.from = l.pos
	if l.pos >= len(l.text) {
		l.tok = tokEnd
		return nil
	}
	switch c := l.text[l.pos]; {
	case isAlpha(c) || c == '_':
		l.word()
		return nil
	case isDigit(c):
		return l.number()
	case c == '.':
		return l.point()
	case c == '"' || c == '\'':
		return l.quoted(c)
	case c == '-':
		if l.startsNumber() {
			return l.number()
		}
		return l.operator(opSubtract, 1)
	default:
		return l.punctuation(c)
	}
}

func (l *lexer) skipSpace() error {
	for l.pos < len(l.text) {
		c := l.text[l.pos]
		if isSpace(c) {
			l.pos++
			continue
		}
		if c != '/' || l.pos+1 >= len(l.text) {
			return nil
		}
		switch l.text[l.pos+1] {
		case '/':
			if i := strings.IndexByte(l.text[l.pos:], '\n'); i >= 0 {
				l.pos += i + 1
			} else {
				l.pos = len(l.text)
			}
		case '*':
			i := strings.Index(l.text[l.pos+2:], "*/")
			if i < 0 {
				return l.fail("comment does not end")
			}
			l.pos += 2 + i + 2
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) emit(t token, width int) error {
	l.tok = t
	l.pos += width
	return nil
}

func (l *lexer) operator(op operator, width int) error {
	l.op = op
	return l.emit(tokOperator, width)
}

// word reads a name or one of the reserved words, in any case.
func (l *lexer) word() {
	i := l.pos
	for i < len(l.text) && (isAlpha(l.text[i]) || isDigit(l.text[i]) || l.text[i] == '_') {
		i++
	}
	l.str = l.text[l.pos:i]
	l.pos = i
	l.tok = tokName
	switch len(l.str) {
	case 2:
		if equalFold(l.str, "is") {
			l.tok, l.op = tokOperator, opIs
		}
	case 4:
		if equalFold(l.str, "true") {
			l.tok, l.num = tokBool, 1
		} else if equalFold(l.str, "isnt") {
			l.tok, l.op = tokOperator, opIsnt
		}
	case 5:
		if equalFold(l.str, "false") {
			l.tok, l.num = tokBool, 0
		} else if equalFold(l.str, "error") {
			l.tok = tokError
		}
	case 9:
		if equalFold(l.str, "undefined") {
			l.tok = tokUndefined
		}
	}
}

// at returns the byte at a place, 0 beyond the end.
func (l *lexer) at(i int) byte {
	if i < len(l.text) {
		return l.text[i]
	}
	return 0
}

func (l *lexer) punctuation(c byte) error {
	rest := l.text[l.pos:]
	has := func(s string) bool { return strings.HasPrefix(rest, s) }
	switch c {
	case '*':
		return l.operator(opMultiply, 1)
	case '/':
		return l.operator(opDivide, 1)
	case '%':
		return l.operator(opModulus, 1)
	case '+':
		return l.operator(opAdd, 1)
	case '~':
		return l.operator(opBitNot, 1)
	case '^':
		return l.operator(opBitXor, 1)
	case ':':
		return l.emit(tokColon, 1)
	case ';':
		return l.emit(tokSemicolon, 1)
	case ',':
		return l.emit(tokComma, 1)
	case '[':
		return l.emit(tokOpenBox, 1)
	case ']':
		return l.emit(tokCloseBox, 1)
	case '(':
		return l.emit(tokOpenParen, 1)
	case ')':
		return l.emit(tokCloseParen, 1)
	case '{':
		return l.emit(tokOpenBrace, 1)
	case '}':
		return l.emit(tokCloseBrace, 1)
	case '?':
		i := 1
		for i < len(rest) && isSpace(rest[i]) {
			i++
		}
		if i < len(rest) && rest[i] == ':' {
			return l.operator(opElvis, i+1)
		}
		return l.emit(tokQuestion, i)
	case '&':
		if has("&&") {
			return l.operator(opAnd, 2)
		}
		return l.operator(opBitAnd, 1)
	case '|':
		if has("||") {
			return l.operator(opOr, 2)
		}
		return l.operator(opBitOr, 1)
	case '<':
		if has("<=") {
			return l.operator(opLessEqual, 2)
		}
		if has("<<") {
			return l.operator(opShiftLeft, 2)
		}
		return l.operator(opLess, 1)
	case '>':
		if has(">=") {
			return l.operator(opGreaterEqual, 2)
		}
		if has(">>>") {
			return l.operator(opShiftRightUnsigned, 3)
		}
		if has(">>") {
			return l.operator(opShiftRight, 2)
		}
		return l.operator(opGreater, 1)
	case '!':
		if has("!=") {
			return l.operator(opNotEqual, 2)
		}
		return l.operator(opNot, 1)
	case '=':
		switch {
		case has("=?="):
			return l.operator(opIs, 3)
		case has("=!="):
			return l.operator(opIsnt, 3)
		case has("=="):
			return l.operator(opEqual, 2)
		case has("=?"):
			return l.fail("=? must be =?=")
		}
		return l.emit(tokAssign, 1)
	}
	return l.fail("no expression has the character " + strconv.QuoteRune(rune(c)))
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isOctal(c byte) bool { return '0' <= c && c <= '7' }
func isAlpha(c byte) bool { return 'a' <= lower(c) && lower(c) <= 'z' }
