package pattern

import (
	"math/bits"
	"strings"
)

// set is a set of bytes.
type set [4]uint64

func (s *set) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *set) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

func (s *set) addRange(from, to byte) {
	for c := int(from); c <= int(to); c++ {
		s.add(byte(c))
	}
}

func (s *set) addString(bytes string) {
	for i := 0; i < len(bytes); i++ {
		s.add(bytes[i])
	}
}

func (s *set) union(t *set) {
	for i := range s {
		s[i] |= t[i]
	}
}

func (s *set) intersect(t *set) {
	for i := range s {
		s[i] &= t[i]
	}
}

func (s *set) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// fold adds the other case of the letters in the set.
func (s *set) fold() {
	for c := byte('a'); c <= 'z'; c++ {
		if u := c - 'a' + 'A'; s.has(c) || s.has(u) {
			s.add(c)
			s.add(u)
		}
	}
}

func (s *set) count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// single returns the only byte of the set.
func (s *set) single() (byte, bool) {
	for i, word := range s {
		if word != 0 {
			return byte(64*i + bits.TrailingZeros64(word)), s.count() == 1
		}
	}
	return 0, false
}

// next is the place of the first byte from at on that is in the set, -1 if there is none.
func (s *set) next(text string, at int) int {
	for ; at < len(text); at++ {
		if s.has(text[at]) {
			return at
		}
	}
	return -1
}

// end is the first place from at on that is not behind a byte of the set, or behind the end of the text.
func (s *set) end(text string, at int) int {
	for at <= len(text) && s.has(text[at-1]) {
		at++
	}
	return at
}

// last is the place of the last byte of a text that is in the set, -1 if there is none.
func (s *set) last(text string) int {
	for at := len(text) - 1; at >= 0; at-- {
		if s.has(text[at]) {
			return at
		}
	}
	return -1
}

func allBytes() *set {
	s := new(set)
	s.invert()
	return s
}

func notNewline() *set {
	s := new(set)
	s.add('\n')
	s.invert()
	return s
}

// namedSet returns the set of an escape such as \d, nil if there is none.
func namedSet(c byte) *set {
	s := new(set)
	switch c | 0x20 {
	case 'd':
		s.addRange('0', '9')
	case 'w':
		s.addRange('0', '9')
		s.addRange('a', 'z')
		s.addRange('A', 'Z')
		s.add('_')
	case 's':
		s.addString(" \t\n\v\f\r")
	case 'h':
		s.addString(" \t\xa0")
	case 'v':
		s.addString("\n\v\f\r\x85")
	default:
		if c == 'N' {
			return notNewline()
		}
		return nil
	}
	if c < 'a' {
		s.invert()
	}
	return s
}

// posixSet returns the set of [:name:], nil if there is none.
func posixSet(name string) *set {
	s := new(set)
	in := func(from, to byte) { s.addRange(from, to) }
	switch name {
	case "alpha":
		in('a', 'z')
		in('A', 'Z')
	case "lower":
		in('a', 'z')
	case "upper":
		in('A', 'Z')
	case "alnum":
		in('a', 'z')
		in('A', 'Z')
		in('0', '9')
	case "ascii":
		in(0, 127)
	case "blank":
		s.addString(" \t")
	case "cntrl":
		in(0, 31)
		s.add(127)
	case "digit":
		in('0', '9')
	case "graph":
		in('!', '~')
	case "print":
		in(' ', '~')
	case "punct":
		in('!', '/')
		in(':', '@')
		in('[', '`')
		in('{', '~')
	case "space":
		s.addString(" \t\n\v\f\r")
	case "word":
		return namedSet('w')
	case "xdigit":
		in('0', '9')
		in('a', 'f')
		in('A', 'F')
	default:
		return nil
	}
	return s
}

// class reads what follows an opening bracket.
func (p *parser) class() (*node, error) {
	s := new(set)
	negative := p.accept("^")
	quoted := false
	for first := true; ; first = false {
		if !p.more() {
			return nil, p.fail("missing ]")
		}
		switch {
		case quoted && p.accept(`\E`):
			quoted = false
			continue
		case !quoted && p.accept(`\Q`):
			quoted = true
			continue
		case !quoted && p.accept(`\E`):
			continue
		}
		if !quoted && !first && p.accept("]") {
			break
		}
		if !quoted && p.flags&extendedMore != 0 && (p.peek(" ") || p.peek("\t")) {
			p.pos++
			continue
		}
		low, named, err := p.classItem(quoted)
		if err != nil {
			return nil, err
		}
		isRange := !quoted && p.peek("-") && len(p.text) > p.pos+1 && p.text[p.pos+1] != ']'
		if named != nil {
			s.union(named)
			if isRange {
				return nil, p.fail("a range begins with a class")
			}
			continue
		}
		if !isRange {
			s.add(low)
			continue
		}
		p.pos++
		high, named, err := p.classItem(false)
		switch {
		case err != nil:
			return nil, err
		case named != nil:
			return nil, p.fail("a range ends with a class")
		case high < low:
			return nil, p.fail("a range is out of order")
		}
		s.addRange(low, high)
	}
	if p.flags&IgnoreCase != 0 {
		s.fold()
	}
	if negative {
		s.invert()
	}
	return &node{kind: kSet, set: s}, nil
}

// classItem reads one byte or one named set of a class.
func (p *parser) classItem(quoted bool) (byte, *set, error) {
	if !quoted && p.peek("[") {
		for _, mark := range []string{":", ".", "="} {
			name, rest, ok := strings.Cut(p.text[p.pos+1:], mark+"]")
			name, opened := strings.CutPrefix(name, mark)
			if !ok || !opened || strings.ContainsAny(name, "]\\") {
				continue
			}
			negative := strings.HasPrefix(name, "^")
			set := posixSet(strings.TrimPrefix(name, "^"))
			if mark != ":" || set == nil {
				return 0, nil, p.fail("unknown POSIX class")
			}
			if negative {
				set.invert()
			}
			p.pos = len(p.text) - len(rest)
			return 0, set, nil
		}
	}
	c := p.text[p.pos]
	p.pos++
	if c != '\\' || quoted {
		return c, nil, nil
	}
	if !p.more() {
		return 0, nil, p.fail(`\ at the end`)
	}
	c = p.text[p.pos]
	p.pos++
	switch c {
	case 'b':
		return '\b', nil, nil
	case 'g', 'k':
		return c, nil, nil
	}
	if strings.IndexByte("BRXNK", c) >= 0 {
		return 0, nil, p.fail("escape not allowed in a class")
	}
	if s := namedSet(c); s != nil {
		return 0, s, nil
	}
	b, err := p.escapedByte(c)
	return b, nil, err
}
