package pattern

import (
	"strconv"
	"strings"
)

// escape reads what follows a backslash outside a class.
func (p *parser) escape() (*node, error) {
	if !p.more() {
		return nil, p.fail(`\ at the end`)
	}
	c := p.text[p.pos]
	p.pos++
	if c == 'N' && p.peek("{") {
		at := p.pos
		_, _, ok := p.braces()
		if p.pos = at; !ok {
			return nil, p.fail(`characters by name, \N{...}, are not supported`)
		}
	}
	if s := namedSet(c); s != nil {
		return &node{kind: kSet, set: s}, nil
	}
	switch c {
	case 'Q':
		p.quoted = true
		return nil, nil
	case 'E':
		return nil, nil
	case 'K':
		return &node{kind: kKeep}, nil
	case 'R':
		return newlineSequence(), nil
	case 'C':
		return &node{kind: kSet, set: allBytes()}, nil
	case 'X':
		return character(), nil
	case 'k':
		return p.nameAfter("k")
	case 'g':
		return p.relative()
	}
	if a, ok := map[byte]assertion{'A': atStart, 'Z': atLastLine, 'z': atEnd, 'G': atSearchStart, 'b': atWordEdge, 'B': notWordEdge}[c]; ok {
		return &node{kind: kAssert, assert: a}, nil
	}
	if '1' <= c && c <= '9' {
		digits := 1
		for p.pos-1+digits < len(p.text) && isDigit(p.text[p.pos-1+digits]) {
			digits++
		}
		n, err := strconv.Atoi(p.text[p.pos-1 : p.pos-1+digits])
		if err != nil {
			return nil, p.fail("no such group")
		}
		if n < 10 || c >= '8' || n <= p.total || p.counting {
			p.pos += digits - 1
			return p.reference(n)
		}
	}
	b, err := p.escapedByte(c)
	if err != nil {
		return nil, err
	}
	return p.literal(b), nil
}

// nameAfter reads <name>, 'name' or {name} and refers to that group.
func (p *parser) nameAfter(string) (*node, error) {
	if p.more() {
		if i := strings.IndexByte("<'{", p.text[p.pos]); i >= 0 {
			name, rest, ok := strings.Cut(p.text[p.pos+1:], ">'}"[i:i+1])
			if ok {
				p.pos = len(p.text) - len(rest)
				return p.namedReference(name)
			}
		}
	}
	return nil, p.fail("not a group name")
}

// relative reads \g1, \g{1}, \g{-1} or \g{name}.
func (p *parser) relative() (*node, error) {
	if p.peek("<") || p.peek("'") {
		return nil, p.fail("subroutine calls are not supported")
	}
	text := p.text[p.pos:]
	if inner, rest, ok := strings.Cut(text, "}"); ok && strings.HasPrefix(text, "{") {
		text = inner[1:]
		p.pos = len(p.text) - len(rest)
		if text != "" && isAlpha(text[0]) || strings.HasPrefix(text, "_") {
			return p.namedReference(text)
		}
	} else {
		i := 0
		if i < len(text) && (text[i] == '-' || text[i] == '+') {
			i++
		}
		for i < len(text) && isDigit(text[i]) {
			i++
		}
		text = text[:i]
		p.pos += i
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, p.fail("not a group number")
	}
	switch {
	case text[0] == '-':
		n += p.groups + 1
	case text[0] == '+':
		n += p.groups
	}
	return p.reference(n)
}

// escapedByte reads the rest of an escape that stands for one byte; c is what
// follows the backslash.
func (p *parser) escapedByte(c byte) (byte, error) {
	if i := strings.IndexByte("aefnrt", c); i >= 0 {
		return "\a\x1b\f\n\r\t"[i], nil
	}
	switch {
	case c == 'x':
		return p.hex()
	case c == 'o':
		inner, rest, ok := strings.Cut(p.text[p.pos:], "}")
		n, err := strconv.ParseUint(strings.TrimPrefix(inner, "{"), 8, 8)
		if !ok || !strings.HasPrefix(inner, "{") || err != nil {
			return 0, p.fail(`\o needs an octal number up to 377 in braces`)
		}
		p.pos = len(p.text) - len(rest)
		return byte(n), nil
	case c == 'c':
		if !p.more() || p.text[p.pos] < ' ' || p.text[p.pos] > '~' {
			return 0, p.fail(`\c needs a printable character`)
		}
		k := p.text[p.pos]
		p.pos++
		if 'a' <= k && k <= 'z' {
			k -= 'a' - 'A'
		}
		return k ^ 0x40, nil
	case c == '8' || c == '9':
		return c, nil
	case isDigit(c):
		n := int(c - '0')
		for i := 0; i < 2 && p.more() && '0' <= p.text[p.pos] && p.text[p.pos] <= '7'; i++ {
			n = n*8 + int(p.text[p.pos]-'0')
			p.pos++
		}
		if n > 255 {
			return 0, p.fail("an octal number above 377")
		}
		return byte(n), nil
	case isAlpha(c):
		return 0, p.fail(`unknown escape \` + string(rune(c)))
	}
	return c, nil
}

func (p *parser) hex() (byte, error) {
	if p.peek("{") {
		inner, rest, ok := strings.Cut(p.text[p.pos+1:], "}")
		n, err := strconv.ParseUint(strings.Trim(inner, " \t"), 16, 8)
		if !ok || err != nil {
			return 0, p.fail(`\x{} needs a hexadecimal number up to ff`)
		}
		p.pos = len(p.text) - len(rest)
		return byte(n), nil
	}
	i := p.pos
	for i < len(p.text) && i < p.pos+2 && strings.IndexByte("0123456789abcdefABCDEF", p.text[i]) >= 0 {
		i++
	}
	n, _ := strconv.ParseUint("0"+p.text[p.pos:i], 16, 8)
	p.pos = i
	return byte(n), nil
}

// newlineSequence is \R.
func newlineSequence() *node {
	one := new(set)
	one.addString("\n\v\f\r\x85")
	return orCRLF(one)
}

// character is what a reader sees as one: among bytes, one of them, or the two that end a line.
func character() *node {
	n := orCRLF(allBytes())
	n.max = -1 // PCRE2 sets no limit to its length
	return n
}

func orCRLF(one *set) *node {
	cr, lf := new(set), new(set)
	cr.add('\r')
	lf.add('\n')
	crlf := &node{kind: kConcat, subs: []*node{{kind: kSet, set: cr}, {kind: kSet, set: lf}}}
	return &node{kind: kAtomic, subs: []*node{{kind: kAlternate, subs: []*node{crlf, {kind: kSet, set: one}}}}}
}
