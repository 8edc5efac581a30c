package classads

import "strings"

// quoted reads a string literal or, in single quotes, a name.
func (l *lexer) quoted(quote byte) error {
	if l.old {
		return l.quotedOld(quote)
	}
	raw, escaped, err := l.quotedPart(quote)
	if err != nil {
		return err
	}
	// Literals that follow each other are one. HTCondor joins them before it
	// looks at escapes (src/classad/lexer.cpp:tokenizeString).
	var joined []byte
	for {
		i := l.pos
		for i < len(l.text) && isSpace(l.text[i]) {
			i++
		}
		if i >= len(l.text) || l.text[i] != quote {
			break
		}
		if joined == nil {
			joined = []byte(raw)
		}
		l.pos = i
		more, esc, err := l.quotedPart(quote)
		if err != nil {
			return err
		}
		joined = append(joined, more...)
		escaped = escaped || esc
	}
	if joined != nil {
		raw = string(joined)
	}
	if escaped {
		var ok bool
		if raw, ok = unescape(raw); !ok {
			return l.fail("a string cannot hold the character NUL")
		}
	}
	l.str = raw
	l.tok = tokString
	if quote == '\'' {
		l.tok = tokName
	}
	return nil
}

// quotedPart reads from an opening quote to the closing one.
func (l *lexer) quotedPart(quote byte) (raw string, escaped bool, err error) {
	start := l.pos + 1
	for i := start; i < len(l.text); i++ {
		switch l.text[i] {
		case quote:
			l.pos = i + 1
			return l.text[start:i], escaped, nil
		case '\\':
			escaped = true
			i++
		}
	}
	return "", false, l.fail("string does not end")
}

// quotedOld reads a string in the old syntax: only a backslash before a quote
// is special, and not when that quote is the last of the line
// (HTCondor src/classad/lexer.cpp:tokenizeStringOld).
func (l *lexer) quotedOld(quote byte) error {
	start := l.pos + 1
	var b []byte // set once an escape was met
	from := start
	for i := start; i < len(l.text); i++ {
		if l.text[i] != quote {
			continue
		}
		last := i+1 >= len(l.text) || l.text[i+1] == '\n'
		if i > start && l.text[i-1] == '\\' && i-1 >= from && !last {
			b = append(b, l.text[from:i-1]...)
			from = i
			continue
		}
		l.str = l.text[from:i]
		if b != nil {
			l.str = string(append(b, l.text[from:i]...))
		}
		l.pos = i + 1
		l.tok = tokString
		if quote == '\'' {
			l.tok = tokName
		}
		return nil
	}
	return l.fail("string does not end")
}

// unescape replaces the escapes of the new syntax; it reports a NUL made by
// one (HTCondor src/classad/util.cpp:convert_escapes).
func unescape(s string) (string, bool) {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i == len(s)-1 {
			b = append(b, c)
			continue
		}
		i++
		c = s[i]
		if k := strings.IndexByte("abfnrtv", c); k >= 0 {
			b = append(b, "\a\b\f\n\r\t\v"[k])
			continue
		}
		if isOctal(c) {
			n := int(c - '0')
			if i+1 < len(s) && isOctal(s[i+1]) {
				i++
				n = n*8 + int(s[i]-'0')
				if n < 0x20 && i+1 < len(s) && isOctal(s[i+1]) {
					i++
					n = n*8 + int(s[i]-'0')
				}
			}
			if n == 0 {
				return "", false
			}
			c = byte(n)
		}
		b = append(b, c)
	}
	return string(b), true
}
