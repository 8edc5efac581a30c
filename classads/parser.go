package classads

import (
	"fmt"
	"strings"
)

// Bounds of the parser where a [Parser] sets none.
const (
	// DefaultMaxText is the longest text accepted, in bytes.
	DefaultMaxText = 8 << 20
	// DefaultMaxNodes is the greatest number of nodes of one expression or ad.
	DefaultMaxNodes = 1 << 18
	// DefaultMaxNesting is how deep expressions nest; HTCondor's own bound
	// (src/classad/source.cpp:MAX_PARSER_DEPTH).
	DefaultMaxNesting = 500
	// DefaultMaxHeight is the greatest height of an expression's tree: a chain
	// such as 1+1+... nests nothing but makes a tree as high as it is long.
	DefaultMaxHeight = 10000
)

// Parser reads ads and expressions within bounds. The zero value uses the
// default bounds; the functions of the package use the zero value.
type Parser struct {
	MaxText    int // bytes
	MaxNodes   int
	MaxNesting int
	MaxHeight  int
}

// SyntaxError says what is wrong with a text and where.
type SyntaxError struct {
	Offset int // bytes from the beginning of the text
	What   string
	Near   string // the text there, cut short
}

func (e *SyntaxError) Error() string {
	if e.Near == "" {
		return fmt.Sprintf("%s at the end of the text (byte %d)", e.What, e.Offset)
	}
	return fmt.Sprintf("%s at byte %d, before %q", e.What, e.Offset, e.Near)
}

// nearLength is how much of the text a syntax error shows.
const nearLength = 24

func (l *lexer) fail(what string) error {
	near := l.text[min(l.from, len(l.text)):]
	if len(near) > nearLength {
		near = near[:nearLength]
	}
	return &SyntaxError{Offset: l.from, What: what, Near: near}
}

func (p Parser) bounded() Parser {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&p.MaxText, DefaultMaxText)
	def(&p.MaxNodes, DefaultMaxNodes)
	def(&p.MaxNesting, DefaultMaxNesting)
	def(&p.MaxHeight, DefaultMaxHeight)
	return p
}

// ParseExpr reads an expression in the new syntax.
func ParseExpr(text string) (*Expr, error) { return Parser{}.Expr(text) }

// ParseOldExpr reads an expression in the old syntax.
func ParseOldExpr(text string) (*Expr, error) { return Parser{}.OldExpr(text) }

// Expr reads an expression in the new syntax.
func (p Parser) Expr(text string) (*Expr, error) {
	n, err := p.parse(text, false)
	if err != nil {
		return nil, fmt.Errorf("ClassAd expression: %w", err)
	}
	return &Expr{n}, nil
}

// OldExpr reads an expression in the old syntax.
func (p Parser) OldExpr(text string) (*Expr, error) {
	n, err := p.parse(text, true)
	if err != nil {
		return nil, fmt.Errorf("ClassAd expression: %w", err)
	}
	return &Expr{n}, nil
}

func (p Parser) parse(text string, old bool) (node, error) {
	s := parse{Parser: p.bounded(), lexer: lexer{text: text, old: old}}
	if err := s.start(); err != nil {
		return nil, err
	}
	n, err := s.expression()
	if err != nil {
		return nil, err
	}
	if s.tok != tokEnd {
		return nil, s.fail("expected the end of the expression")
	}
	return n, nil
}

// parse is one run of the parser.
type parse struct {
	Parser
	lexer
	depth  int // nesting of the function calls
	nodes  int
	height int // of the node made last
}

// start checks the text as a whole and reads the first token.
func (s *parse) start() error {
	if len(s.text) > s.MaxText {
		return fmt.Errorf("text of %d bytes is longer than the %d allowed", len(s.text), s.MaxText)
	}
	if i := strings.IndexByte(s.text, 0); i >= 0 {
		s.from = i
		return s.fail("text cannot hold the character NUL")
	}
	return s.next()
}

func (s *parse) enter() error {
	if s.depth++; s.depth > s.MaxNesting {
		return s.fail(fmt.Sprintf("more than %d levels of nesting", s.MaxNesting))
	}
	return nil
}

func (s *parse) leave() { s.depth-- }

// made accounts for a node whose highest child has the given height.
func (s *parse) made(childHeight int) error {
	s.height = childHeight + 1
	if s.height > s.MaxHeight {
		return s.fail(fmt.Sprintf("an expression higher than %d", s.MaxHeight))
	}
	if s.nodes++; s.nodes > s.MaxNodes {
		return s.fail(fmt.Sprintf("more than %d nodes", s.MaxNodes))
	}
	return nil
}

// expression reads a conditional or anything that binds stronger.
func (s *parse) expression() (node, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	cond, err := s.binary(1)
	if err != nil || s.tok != tokQuestion {
		return cond, err
	}
	h := s.height
	if err := s.next(); err != nil {
		return nil, err
	}
	yes, err := s.expression()
	if err != nil {
		return nil, err
	}
	h = max(h, s.height)
	if err := s.expect(tokColon, "expected :"); err != nil {
		return nil, err
	}
	no, err := s.expression()
	if err != nil {
		return nil, err
	}
	return &operation{opTernary, cond, yes, no}, s.made(max(h, s.height))
}

func (s *parse) expect(t token, what string) error {
	if s.tok != t {
		return s.fail(what)
	}
	return s.next()
}

// precedences of the binary operators; all associate to the left.
var precedences = [...]uint8{
	opOr: 1, opAnd: 2, opBitOr: 3, opBitXor: 4, opBitAnd: 5,
	opEqual: 6, opNotEqual: 6, opIs: 6, opIsnt: 6,
	opLess: 7, opLessEqual: 7, opGreater: 7, opGreaterEqual: 7,
	opShiftLeft: 8, opShiftRight: 8, opShiftRightUnsigned: 8,
	opAdd: 9, opSubtract: 9, opMultiply: 10, opDivide: 10, opModulus: 10,
	opTernary: 0,
}

// binary reads operators of at least the given precedence.
func (s *parse) binary(least uint8) (node, error) {
	left, err := s.unary()
	if err != nil {
		return nil, err
	}
	for s.tok == tokOperator {
		op, prec := s.op, precedences[s.op]
		if prec < least || prec == 0 {
			break
		}
		h := s.height
		if err := s.next(); err != nil {
			return nil, err
		}
		right, err := s.binary(prec + 1)
		if err != nil {
			return nil, err
		}
		if err := s.made(max(h, s.height)); err != nil {
			return nil, err
		}
		left = &operation{op: op, a: left, b: right}
	}
	return left, nil
}

func (s *parse) unary() (node, error) {
	if s.tok != tokOperator {
		return s.postfix()
	}
	var op operator
	switch s.op {
	case opSubtract:
		op = opMinus
	case opAdd:
		op = opPlus
	case opBitNot, opNot:
		op = s.op
	default:
		return s.postfix()
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if err := s.next(); err != nil {
		return nil, err
	}
	n, err := s.unary()
	if err != nil {
		return nil, err
	}
	return &operation{op: op, a: n}, s.made(s.height)
}

// postfix reads selections, subscripts and the ?: operator, which binds as
// strong as they do (HTCondor src/classad/source.cpp:parsePostfixExpression).
func (s *parse) postfix() (node, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	n, err := s.primary()
	if err != nil {
		return nil, err
	}
	for {
		h := s.height
		switch {
		case s.tok == tokDot:
			if err := s.next(); err != nil {
				return nil, err
			}
			if s.tok != tokName {
				return nil, s.fail("expected an attribute name after .")
			}
			n = newAttrRef(s.str, n, false)
			if err := s.next(); err != nil {
				return nil, err
			}
		case s.tok == tokOpenBox:
			if err := s.next(); err != nil {
				return nil, err
			}
			index, err := s.expression()
			if err != nil {
				return nil, err
			}
			if err := s.expect(tokCloseBox, "expected ]"); err != nil {
				return nil, err
			}
			h = max(h, s.height)
			n = &operation{op: opSubscript, a: n, b: index}
		case s.tok == tokOperator && s.op == opElvis:
			if err := s.next(); err != nil {
				return nil, err
			}
			other, err := s.postfix()
			if err != nil {
				return nil, err
			}
			h = max(h, s.height)
			n = &operation{op: opElvis, a: n, b: other}
		default:
			return n, nil
		}
		if err := s.made(h); err != nil {
			return nil, err
		}
	}
}

func (s *parse) primary() (node, error) {
	var n node
	switch s.tok {
	case tokName:
		return s.nameOrCall()
	case tokDot:
		if err := s.next(); err != nil {
			return nil, err
		}
		if s.tok != tokName {
			return nil, s.fail("expected an attribute name after .")
		}
		n = newAttrRef(s.str, nil, true)
	case tokOpenParen:
		if err := s.next(); err != nil {
			return nil, err
		}
		inner, err := s.expression()
		if err != nil {
			return nil, err
		}
		if err := s.expect(tokCloseParen, "expected )"); err != nil {
			return nil, err
		}
		return &operation{op: opParentheses, a: inner}, s.made(s.height)
	case tokOpenBox:
		ad, err := s.ad()
		if err != nil {
			return nil, err
		}
		return &adNode{ad}, s.made(s.height)
	case tokOpenBrace:
		items, err := s.sequence(tokCloseBrace, "expected , or }")
		if err != nil {
			return nil, err
		}
		return &listNode{items}, s.made(s.height)
	case tokUndefined:
		n = undefinedNode
	case tokError:
		n = errorNode
	case tokBool:
		n = boolNode(s.num != 0)
	case tokInt:
		n = &literal{IntValue(s.num)}
	case tokReal:
		n = &literal{RealValue(s.real)}
	case tokString:
		n = &literal{StringValue(s.str)}
	default:
		return nil, s.fail("expected an operand")
	}
	if err := s.made(0); err != nil {
		return nil, err
	}
	return n, s.next()
}

func (s *parse) nameOrCall() (node, error) {
	name := s.str
	if err := s.next(); err != nil {
		return nil, err
	}
	if s.tok != tokOpenParen {
		return newAttrRef(name, nil, false), s.made(0)
	}
	args, err := s.sequence(tokCloseParen, "expected , or )")
	if err != nil {
		return nil, err
	}
	if len(args) == 1 {
		if l, ok := args[0].(*literal); ok && l.kind == String {
			if n, done := timeLiteral(name, l.str); done {
				if n == nil {
					return nil, s.fail("not a time: " + name)
				}
				return n, s.made(0)
			}
		}
	}
	return &call{name: name, fn: lookupBuiltin(name), args: args}, s.made(s.height)
}

// sequence reads the items of a list or the arguments of a function; the
// current token is the opening bracket. In arguments a semicolon may stand for
// a comma.
func (s *parse) sequence(end token, what string) ([]node, error) {
	if err := s.next(); err != nil {
		return nil, err
	}
	if s.tok == end {
		s.height = 0
		return nil, s.next()
	}
	var items []node
	h := 0
	for {
		n, err := s.expression()
		if err != nil {
			return nil, err
		}
		h = max(h, s.height)
		items = append(items, n)
		if s.tok != tokComma && (s.tok != tokSemicolon || end != tokCloseParen) {
			break
		}
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	s.height = h
	return items, s.expect(end, what)
}
