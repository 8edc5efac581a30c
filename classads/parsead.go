package classads

import (
	"fmt"
	"strings"
)

// ParseNew reads an ad in the new syntax, [ a = 1; ... ].
func ParseNew(text string) (*Ad, error) { return Parser{}.New(text) }

// ParseOld reads an ad in the old syntax: lines "Name = expression". It skips
// blank lines and lines that begin with #. If a name occurs more than once, the
// last line counts.
func ParseOld(text string) (*Ad, error) { return Parser{}.Old(text) }

// ParseOldLine reads one line "Name = expression" of the old syntax.
func ParseOldLine(line string) (name string, e *Expr, err error) { return Parser{}.OldLine(line) }

// New reads an ad in the new syntax.
func (p Parser) New(text string) (*Ad, error) {
	s := parse{Parser: p.bounded(), lexer: lexer{text: text}}
	err := s.start()
	if err == nil && s.tok != tokOpenBox {
		err = s.fail("expected [")
	}
	if err != nil {
		return nil, fmt.Errorf("ClassAd: %w", err)
	}
	ad, err := s.ad()
	if err == nil && s.tok != tokEnd {
		err = s.fail("expected the end of the ad")
	}
	if err != nil {
		return nil, fmt.Errorf("ClassAd: %w", err)
	}
	return ad, nil
}

// ad reads an ad; the current token is its opening bracket.
func (s *parse) ad() (*Ad, error) {
	if err := s.next(); err != nil {
		return nil, err
	}
	ad := NewAd()
	h, semicolons := 0, false
	for s.tok != tokCloseBox {
		if s.tok == tokSemicolon { // empty items are allowed beside others
			semicolons = true
			if err := s.next(); err != nil {
				return nil, err
			}
			continue
		}
		if s.tok != tokName {
			return nil, s.fail("expected an attribute name or ]")
		}
		name := s.str
		if err := s.next(); err != nil {
			return nil, err
		}
		if err := s.expect(tokAssign, "expected = after the attribute name"); err != nil {
			return nil, err
		}
		n, err := s.expression()
		if err != nil {
			return nil, err
		}
		h = max(h, s.height)
		if name == "" {
			return nil, s.fail("an attribute name cannot be empty")
		}
		ad.set(name, n)
		if s.tok != tokSemicolon && s.tok != tokCloseBox {
			return nil, s.fail("expected ; or ]")
		}
	}
	if ad.Len() == 0 && semicolons {
		return nil, s.fail("expected an attribute name before the end of the ad")
	}
	s.height = h
	return ad, s.next()
}

// Old reads an ad in the old syntax.
func (p Parser) Old(text string) (*Ad, error) {
	p = p.bounded()
	if len(text) > p.MaxText {
		return nil, fmt.Errorf("ClassAd: text of %d bytes is longer than the %d allowed", len(text), p.MaxText)
	}
	lines := strings.Count(text, "\n") + 1
	ad := NewAd()
	ad.Grow(lines)
	s := parse{Parser: p, lexer: lexer{old: true}, size: lines}
	for number := 1; text != ""; number++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if line = trimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, n, err := s.oldLine(line)
		if err != nil {
			return nil, fmt.Errorf("ClassAd line %d: %w", number, err)
		}
		ad.set(name, n)
	}
	return ad, nil
}

// OldLine reads one line "Name = expression" of the old syntax.
func (p Parser) OldLine(line string) (string, *Expr, error) {
	s := parse{Parser: p.bounded(), lexer: lexer{old: true}}
	name, n, err := s.oldLine(line)
	if err != nil {
		return "", nil, err
	}
	return name, &Expr{n}, nil
}

func (s *parse) oldLine(line string) (string, node, error) {
	name, text, ok := strings.Cut(line, "=")
	for name != "" && isSpace(name[0]) {
		name = name[1:]
	}
	name = strings.TrimRight(name, " ") // no other white space (HTCondor src/condor_utils/compat_classad.cpp:SplitLongFormAttrValue)
	if !ok || name == "" || strings.ContainsAny(name, "\n\x00") {
		return "", nil, fmt.Errorf("%q is not of the form Name = expression", shorten(line))
	}
	n, err := s.whole(trimSpace(text))
	if err != nil {
		return "", nil, fmt.Errorf("attribute %s: %w", shorten(name), err)
	}
	return name, n, nil
}

// trimSpace cuts white space off both ends.
func trimSpace(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	for s != "" && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func shorten(s string) string {
	if len(s) > 2*nearLength {
		return s[:2*nearLength] + "..."
	}
	return s
}
