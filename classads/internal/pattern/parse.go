package pattern

import (
	"fmt"
	"strings"
)

// kind is the type of a node of a parsed pattern.
type kind uint8

const (
	kEmpty kind = iota
	kSet        // one byte of a set
	kConcat
	kAlternate
	kRepeat
	kGroup // capturing
	kAtomic
	kLook    // look-around
	kBackref // the text of a group
	kAssert  // a place
	kKeep    // \K
)

// assertion is a condition on a place in the text.
type assertion uint8

const (
	atLineStart   assertion = iota // ^ with m
	atStart                        // \A
	atSearchStart                  // \G
	atLineEnd                      // $ with m
	atLastLine                     // \Z, $
	atEnd                          // \z
	atWordEdge                     // \b
	notWordEdge                    // \B
)

type node struct {
	kind     kind
	set      *set
	subs     []*node
	min, max int // of a repeat; max < 0 is no bound
	lazy     bool
	n        int // group number
	fold     bool
	assert   assertion
	behind   bool
	negative bool
}

// parser reads a pattern twice: the first time to count the groups and find
// their names, which may be referred to before they are defined.
type parser struct {
	text     string
	pos      int
	flags    Flags
	counting bool
	groups   int // opened so far
	total    int // in the whole pattern
	names    map[string]int
	depth    int
	quoted   bool // within \Q...\E
}

func newParser(text string, flags Flags, counting bool) *parser {
	return &parser{text: text, flags: flags, counting: counting, names: make(map[string]int)}
}

func (p *parser) fail(what string) error { return &Error{p.text, p.pos, what} }
func (p *parser) more() bool             { return p.pos < len(p.text) }
func (p *parser) peek(s string) bool     { return strings.HasPrefix(p.text[p.pos:], s) }

func (p *parser) accept(s string) bool {
	if !p.peek(s) {
		return false
	}
	p.pos += len(s)
	return true
}

// groupName returns the name of a group that begins ?<name>, ?'name' or
// ?P<name>.
func groupName(s string) (string, bool) {
	s, ok := strings.CutPrefix(s, "?")
	if !ok {
		return "", false
	}
	s = strings.TrimPrefix(s, "P")
	if len(s) < 2 || s[0] != '<' && s[0] != '\'' || s[1] == '=' || s[1] == '!' {
		return "", false
	}
	end := byte('>')
	if s[0] == '\'' {
		end = '\''
	}
	i := strings.IndexByte(s[1:], end)
	if i < 0 {
		return "", false
	}
	return s[1 : 1+i], true
}

func (p *parser) parse() (*node, error) {
	n, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if p.more() {
		return nil, p.fail("unmatched )")
	}
	return n, nil
}

// alternatives reads up to the end or a closing parenthesis.
func (p *parser) alternatives() (*node, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.fail(fmt.Sprintf("more than %d levels of nesting", maxNesting))
	}
	defer func() { p.depth-- }()
	var all []*node
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		all = append(all, n)
		if !p.accept("|") {
			break
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return &node{kind: kAlternate, subs: all}, nil
}

func (p *parser) sequence() (*node, error) {
	seq := &node{kind: kConcat}
	for {
		if !p.quoted {
			if err := p.skip(); err != nil {
				return nil, err
			}
			if !p.more() || p.text[p.pos] == '|' || p.text[p.pos] == ')' {
				return seq, nil
			}
		} else if !p.more() {
			return seq, nil
		}
		item, err := p.item()
		if err != nil {
			return nil, err
		}
		if item == nil { // something that matches nothing, such as (?i)
			if !p.quoted {
				if err := p.skip(); err != nil {
					return nil, err
				}
				if _, _, ok := p.quantifier(); ok {
					return nil, p.fail("a quantifier follows nothing")
				}
			}
			continue
		}
		if item, err = p.quantified(item); err != nil {
			return nil, err
		}
		seq.subs = append(seq.subs, item)
	}
}

// skip skips comments and, with x, white space.
func (p *parser) skip() error {
	for p.more() {
		switch c := p.text[p.pos]; {
		case p.peek("(?#"):
			i := strings.IndexByte(p.text[p.pos:], ')')
			if i < 0 {
				return p.fail("comment does not end")
			}
			p.pos += i + 1
		case p.flags&Extended != 0 && isSpace(c):
			p.pos++
		case p.flags&Extended != 0 && c == '#':
			if i := strings.IndexByte(p.text[p.pos:], '\n'); i >= 0 {
				p.pos += i + 1
			} else {
				p.pos = len(p.text)
			}
		default:
			return nil
		}
	}
	return nil
}

// item reads one item without its quantifier; nil if it does not match text.
func (p *parser) item() (*node, error) {
	if p.quoted {
		if p.accept(`\E`) {
			p.quoted = false
			return nil, nil
		}
		c := p.text[p.pos]
		p.pos++
		return p.literal(c), nil
	}
	c := p.text[p.pos]
	p.pos++
	switch c {
	case '.':
		if p.flags&DotAll != 0 {
			return &node{kind: kSet, set: allBytes()}, nil
		}
		return &node{kind: kSet, set: notNewline()}, nil
	case '^':
		if p.flags&MultiLine != 0 {
			return &node{kind: kAssert, assert: atLineStart}, nil
		}
		return &node{kind: kAssert, assert: atStart}, nil
	case '$':
		if p.flags&MultiLine != 0 {
			return &node{kind: kAssert, assert: atLineEnd}, nil
		}
		return &node{kind: kAssert, assert: atLastLine}, nil
	case '[':
		return p.class()
	case '(':
		return p.group()
	case '\\':
		return p.escape()
	case '*', '+', '?', '{':
		p.pos--
		if _, _, ok := p.quantifier(); ok {
			return nil, p.fail("a quantifier follows nothing")
		}
		p.pos++
	}
	return p.literal(c), nil
}

func (p *parser) literal(c byte) *node {
	s := new(set)
	s.add(c)
	if p.flags&IgnoreCase != 0 {
		s.fold()
	}
	return &node{kind: kSet, set: s}
}

// quantifier reads * + ? or {n,m}.
func (p *parser) quantifier() (least, most int, ok bool) {
	if !p.more() {
		return 0, 0, false
	}
	switch p.text[p.pos] {
	case '*':
		p.pos++
		return 0, -1, true
	case '+':
		p.pos++
		return 1, -1, true
	case '?':
		p.pos++
		return 0, 1, true
	case '{':
		return p.braces()
	}
	return 0, 0, false
}

// braces reads {n}, {n,}, {n,m} or {,m}; anything else is text.
func (p *parser) braces() (least, most int, ok bool) {
	end := strings.IndexByte(p.text[p.pos:], '}')
	if end < 0 {
		return 0, 0, false
	}
	low, high, comma := strings.Cut(p.text[p.pos+1:p.pos+end], ",")
	number := func(s string) (int, bool) {
		s = strings.Trim(s, " \t")
		if s == "" {
			return -1, true
		}
		n := 0
		for i := 0; i < len(s); i++ {
			if !isDigit(s[i]) {
				return 0, false
			}
			n = min(n*10+int(s[i]-'0'), maxRepeat+1)
		}
		return n, true
	}
	least, ok1 := number(low)
	most, ok2 := number(high)
	if !ok1 || !ok2 || least < 0 && (!comma || most < 0) {
		return 0, 0, false
	}
	if !comma {
		most = least
	}
	p.pos += end + 1
	return max(least, 0), most, true
}

// quantified reads what follows an item and repeats it accordingly.
func (p *parser) quantified(item *node) (*node, error) {
	if p.quoted && !p.peek(`\E`) {
		return item, nil
	}
	for p.quoted && p.accept(`\E`) {
		p.quoted = false
	}
	if err := p.skip(); err != nil {
		return nil, err
	}
	least, most, ok := p.quantifier()
	if !ok {
		return item, nil
	}
	if least > maxRepeat || most > maxRepeat {
		return nil, p.fail(fmt.Sprintf("more than %d repetitions", maxRepeat))
	}
	if most >= 0 && most < least {
		return nil, p.fail("the numbers of a quantifier are out of order")
	}
	if item.kind == kAssert || item.kind == kKeep {
		return nil, p.fail("a quantifier follows nothing that can be repeated")
	}
	if err := p.skip(); err != nil {
		return nil, err
	}
	n := &node{kind: kRepeat, subs: []*node{item}, min: least, max: most, lazy: p.flags&ungreedy != 0}
	switch {
	case p.accept("?"):
		n.lazy = !n.lazy
	case p.accept("+"):
		n.lazy = false
		return &node{kind: kAtomic, subs: []*node{n}}, nil
	}
	return n, nil
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isWord(c byte) bool  { return isAlpha(c) || isDigit(c) || c == '_' }
