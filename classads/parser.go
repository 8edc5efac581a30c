package classads

import (
	"fmt"
	"strings"
	"time"
)

// Limits of a [Parser] that sets none.
const (
	// DefaultMaxText is the length of the longest text, in bytes.
	DefaultMaxText = 8 << 20
	// DefaultMaxNodes is the largest number of nodes of one expression or ad.
	DefaultMaxNodes = 1 << 18
	// DefaultMaxNesting is how deep expressions may nest; it is HTCondor's limit
	// (src/classad/source.cpp:MAX_PARSER_DEPTH), which 166 pairs of parentheses reach.
	DefaultMaxNesting = 500
	// DefaultMaxHeight is the largest height of an expression's tree. A chain such
	// as 1+1+... nests nothing, but its tree is as high as the chain is long.
	DefaultMaxHeight = 10000
)

// Parser reads ads and expressions, within limits. A limit that is not positive
// stands for the default. The functions of the package use the zero value.
type Parser struct {
	MaxText    int // bytes of a text
	MaxNodes   int // nodes of an expression or ad
	MaxNesting int // levels of the grammar: three for parentheses, a list or a call, one for a unary operator or ?:
	MaxHeight  int // levels of the tree of an expression

	// Left, if set, is how many nodes all texts together may still have. The
	// parser counts it down.
	Left *int

	// Zone is the time zone of absolute times whose text has no offset, as in
	// absTime("2024-02-29T12:00:00"). The parser computes the moment; no
	// evaluation changes it later. Nil is time.Local, the zone that HTCondor's
	// parser uses. See [Env.Now] for the zone of evaluations.
	Zone *time.Location
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
	s := parse{Parser: p.bounded(), lexer: lexer{old: old}}
	return s.whole(text)
}

// parse is one run of the parser.
type parse struct {
	Parser
	lexer
	depth  int // nesting of the function calls
	nodes  int
	height int // of the node made last

	// Literals are made in blocks: most attributes are one.
	block []literal // what is left of the block
	size  int       // of the next block
}

// mostBlock is the greatest number of literals in a block. A block lives as long as one of
// them does.
const mostBlock = 32

// whole reads a text that is one expression. Nodes are counted in addition to those of the
// texts before it.
func (s *parse) whole(text string) (node, error) {
	s.lexer = lexer{text: text, old: s.old}
	s.depth, s.height = 0, 0
	if err := s.start(); err != nil {
		return nil, err
	}
	if n := s.alone(); n != nil {
		return n, s.made(0)
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

// alone returns the literal that is the whole text, as most attributes are; nil
// if it is something else.
func (s *parse) alone() node {
	from := s.lexer
	if from.tok < tokInt || from.tok > tokError || s.next() != nil || s.tok != tokEnd {
		s.lexer = from
		return nil
	}
	switch from.tok {
	case tokInt:
		return s.constant(IntValue(from.num))
	case tokReal:
		return s.constant(RealValue(from.real))
	case tokString:
		return s.constant(StringValue(from.str))
	case tokBool:
		return boolNode(from.num != 0)
	case tokUndefined:
		return undefinedNode
	}
	return errorNode
}

// constant makes a literal.
func (s *parse) constant(v Value) node {
	if len(s.block) == 0 {
		s.size = min(max(s.size, 1), mostBlock)
		s.block = make([]literal, s.size)
		s.size *= 2
	}
	l := &s.block[0]
	s.block = s.block[1:]
	l.Value = v
	return l
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
	if s.Left != nil {
		if *s.Left <= 0 {
			return s.fail("more nodes than are left for all texts together")
		}
		*s.Left--
	}
	return nil
}
