package pattern

import "strings"

// group reads what follows an opening parenthesis.
func (p *parser) group() (*node, error) {
	saved := p.flags
	if p.peek("*") && len(p.text) > p.pos+1 && (isAlpha(p.text[p.pos+1]) || p.text[p.pos+1] == ':') {
		return nil, p.fail("control verbs are not supported")
	}
	if !p.accept("?") {
		if p.flags&noCapture != 0 {
			return p.body(nil, saved)
		}
		return p.capture(saved)
	}
	if name, ok := groupName("?" + p.text[p.pos:]); ok {
		if err := p.checkName(name); err != nil {
			return nil, err
		}
		p.pos += len(name) + 2
		if p.text[p.pos-1] != '>' && p.text[p.pos-1] != '\'' { // ?P<name>
			p.pos++
		}
		if p.counting {
			if p.names[name] != 0 {
				return nil, p.fail("two groups have the name " + name)
			}
			p.names[name] = p.groups + 1
		}
		return p.capture(saved)
	}
	switch {
	case p.accept(":"):
		return p.body(nil, saved)
	case p.accept(">"):
		return p.body(&node{kind: kAtomic}, saved)
	case p.accept("="):
		return p.body(&node{kind: kLook}, saved)
	case p.accept("!"):
		return p.body(&node{kind: kLook, negative: true}, saved)
	case p.accept("<="):
		return p.behind(false, saved)
	case p.accept("<!"):
		return p.behind(true, saved)
	case p.accept("P="):
		name, rest, ok := strings.Cut(p.text[p.pos:], ")")
		if !ok {
			return nil, p.fail("missing )")
		}
		p.pos = len(p.text) - len(rest)
		return p.namedReference(name)
	case p.peek("("), p.peek("R"), p.peek("&"), p.peek("P>"), p.peek("|"), p.peek("C"),
		p.more() && isDigit(p.text[p.pos]), len(p.text) > p.pos+1 && (p.peek("+") || p.peek("-")) && isDigit(p.text[p.pos+1]):
		return nil, p.fail("recursion, conditional groups, branch reset and callouts are not supported")
	}
	return p.inlineFlags(saved)
}

// inlineFlags reads (?i) or (?i:...).
func (p *parser) inlineFlags(saved Flags) (*node, error) {
	letters := map[byte]Flags{'i': IgnoreCase, 'm': MultiLine, 's': DotAll, 'x': Extended, 'U': ungreedy, 'n': noCapture}
	flags, off := p.flags, false
	if p.accept("^") {
		flags &^= IgnoreCase | MultiLine | DotAll | Extended | extendedMore | noCapture
	}
	for ; ; p.pos++ {
		if !p.more() {
			return nil, p.fail("missing )")
		}
		c := p.text[p.pos]
		switch {
		case c == '-' && !off:
			off = true
		case c == 'J':
		case letters[c] == 0:
			if c != ')' && c != ':' {
				return nil, p.fail("unknown group")
			}
			p.pos++
			p.flags = flags
			if c == ')' {
				return nil, nil // until the end of the enclosing group
			}
			return p.body(nil, saved)
		case off:
			if flags &^= letters[c]; c == 'x' {
				flags &^= extendedMore
			}
		default:
			if c == 'x' && flags&Extended != 0 && p.text[p.pos-1] == 'x' {
				flags |= extendedMore
			}
			flags |= letters[c]
		}
	}
}

// body reads the rest of a group; saved are the flags that hold after it.
func (p *parser) body(wrap *node, saved Flags) (*node, error) {
	n, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.accept(")") {
		return nil, p.fail("missing )")
	}
	p.flags = saved
	if wrap == nil {
		return &node{kind: kConcat, subs: []*node{n}}, nil
	}
	wrap.subs = []*node{n}
	return wrap, nil
}

func (p *parser) capture(saved Flags) (*node, error) {
	p.groups++
	return p.body(&node{kind: kGroup, n: p.groups}, saved)
}

func (p *parser) behind(negative bool, saved Flags) (*node, error) {
	n, err := p.body(nil, saved)
	if err != nil {
		return nil, err
	}
	return lookBehind(n.subs[0], negative), nil
}

func (p *parser) checkName(name string) error {
	if name == "" || isDigit(name[0]) || len(name) > 128 {
		return p.fail("not a group name")
	}
	for i := 0; i < len(name); i++ {
		if !isWord(name[i]) {
			return p.fail("not a group name")
		}
	}
	return nil
}

func (p *parser) namedReference(name string) (*node, error) {
	if err := p.checkName(name); err != nil {
		return nil, err
	}
	n, ok := p.names[name]
	if p.counting {
		return p.reference(1)
	}
	if !ok {
		return nil, p.fail("no group has the name " + name)
	}
	return p.reference(n)
}

func (p *parser) reference(n int) (*node, error) {
	if !p.counting && (n < 1 || n > p.total) {
		return nil, p.fail("no such group")
	}
	return &node{kind: kBackref, n: n, fold: p.flags&IgnoreCase != 0}, nil
}
