package shell

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// command is one simple command, and the condition for running it.
type command struct {
	words []string
	after operator // what joins it to the command before
}

type operator string

const (
	always operator = ";"
	and    operator = "&&"
	or     operator = "||"
)

// maxLine bounds a line in bytes.
const maxLine = 64 << 10

// parse splits a line into commands. lookup returns the value of a variable.
func parse(line string, lookup func(name string) string) ([]command, error) {
	if len(line) > maxLine {
		return nil, fmt.Errorf("the line is longer than %d bytes", maxLine)
	}
	p := parser{rest: line, lookup: lookup}
	for p.rest != "" {
		if err := p.step(); err != nil {
			return nil, err
		}
	}
	p.endWord()
	if len(p.now.words) == 0 && p.now.after != "" && p.now.after != always {
		return nil, fmt.Errorf("nothing follows %s", p.now.after)
	}
	p.endCommand(always)
	return p.all, nil
}

type parser struct {
	rest   string
	lookup func(string) string

	all  []command
	now  command
	word strings.Builder
	// inWord distinguishes an empty word in quotes from no word.
	inWord bool
	// pattern is the word with its quoted parts escaped, for filepath.Glob.
	pattern strings.Builder
	magic   bool // the word has a * or ? or [ that was not quoted
}

func (p *parser) step() error {
	c := p.rest[0]
	switch c {
	case ' ', '\t', '\r':
		p.endWord()
	case '\n', ';':
		p.endWord()
		if err := p.join(always); err != nil {
			return err
		}
	case '#':
		if !p.inWord {
			if end := strings.IndexByte(p.rest, '\n'); end >= 0 {
				p.rest = p.rest[end:]
				return nil
			}
			p.rest = ""
			return nil
		}
		p.add(string(c), false)
	case '\'', '"':
		return p.quoted(c)
	case '\\':
		if len(p.rest) < 2 {
			return errors.New("the line ends in a backslash")
		}
		p.add(p.rest[1:2], true)
		p.rest = p.rest[2:]
		return nil
	case '$':
		return p.variable(false)
	case '~':
		if !p.inWord && (len(p.rest) == 1 || strings.IndexByte(" \t/;&|", p.rest[1]) >= 0) {
			p.add(p.lookup("HOME"), true)
			break
		}
		p.add(string(c), false)
	case '&', '|':
		if len(p.rest) > 1 && p.rest[1] == c {
			p.rest = p.rest[1:]
			p.endWord()
			op := and
			if c == '|' {
				op = or
			}
			if len(p.now.words) == 0 {
				return fmt.Errorf("nothing precedes %s", op)
			}
			if err := p.join(op); err != nil {
				return err
			}
			break
		}
		return missing(c)
	case '<', '>', '`', '(', ')':
		return missing(c)
	default:
		p.add(string(c), false)
	}
	p.rest = p.rest[1:]
	return nil
}

func missing(c byte) error {
	return fmt.Errorf("this shell cannot do %q: it has no pipes, redirections, substitutions or jobs, since the image has no shell of its own", c)
}

// join ends a command.
func (p *parser) join(next operator) error {
	if len(p.now.words) == 0 && p.now.after != "" && p.now.after != always {
		return fmt.Errorf("nothing follows %s", p.now.after)
	}
	p.endCommand(next)
	return nil
}

func (p *parser) endCommand(next operator) {
	if len(p.now.words) > 0 {
		p.all = append(p.all, p.now)
	}
	p.now = command{after: next}
}

func (p *parser) add(text string, quoted bool) {
	p.inWord = true
	p.word.WriteString(text)
	if !quoted && strings.ContainsAny(text, "*?[") {
		p.magic = true
	}
	for i := range len(text) {
		if quoted && strings.IndexByte(`*?[\`, text[i]) >= 0 {
			p.pattern.WriteByte('\\')
		}
		p.pattern.WriteByte(text[i])
	}
}

// endWord ends a word, which may be a pattern for file names.
func (p *parser) endWord() {
	if !p.inWord {
		return
	}
	var names []string
	if p.magic {
		names, _ = filepath.Glob(p.pattern.String())
	}
	if len(names) == 0 {
		names = []string{p.word.String()}
	}
	p.now.words = append(p.now.words, names...)
	p.word.Reset()
	p.pattern.Reset()
	p.inWord, p.magic = false, false
}

func (p *parser) quoted(by byte) error {
	p.rest = p.rest[1:]
	p.inWord = true
	for p.rest != "" {
		c := p.rest[0]
		switch {
		case c == by:
			p.rest = p.rest[1:]
			return nil
		case by == '"' && c == '$':
			if err := p.variable(true); err != nil {
				return err
			}
			continue
		case by == '"' && c == '`':
			return missing(c)
		case by == '"' && c == '\\' && len(p.rest) > 1 && strings.IndexByte("\\\"$`", p.rest[1]) >= 0:
			p.rest = p.rest[1:]
			c = p.rest[0]
		}
		p.add(string(c), true)
		p.rest = p.rest[1:]
	}
	return fmt.Errorf("the quotation mark %c is not closed", by)
}

// variable inserts the value of $NAME or ${NAME}. Outside of quotes it is split
// into words.
func (p *parser) variable(quoted bool) error {
	p.rest = p.rest[1:]
	name := ""
	if strings.HasPrefix(p.rest, "{") {
		end := strings.IndexByte(p.rest, '}')
		if end < 0 {
			return errors.New("the brace of a variable is not closed")
		}
		name, p.rest = p.rest[1:end], p.rest[end+1:]
		if nameLength(name) != len(name) || name == "" {
			return fmt.Errorf("this shell cannot do ${%.40s}", name)
		}
	} else {
		if strings.HasPrefix(p.rest, "(") {
			return missing('(')
		}
		n := nameLength(p.rest)
		if n == 0 {
			p.add("$", true)
			return nil
		}
		name, p.rest = p.rest[:n], p.rest[n:]
	}
	value := p.lookup(name)
	if quoted {
		p.add(value, true)
		return nil
	}
	for i, word := range strings.Fields(value) {
		if i > 0 {
			p.endWord()
		}
		p.add(word, true)
	}
	return nil
}

func nameLength(s string) int {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(s)
}
