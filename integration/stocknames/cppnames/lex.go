package cppnames

import (
	"strings"
	"unicode/utf8"
)

// kind says what a token is.
type kind uint8

const (
	word   kind = iota // identifiers, keywords and numbers
	text               // a literal string, without quotes
	symbol             // one or two characters of punctuation
)

// token is a part of a file.
type token struct {
	kind    kind
	text    string
	windows bool // only Windows compiles it
}

// macro is what #define says.
type macro struct {
	name   string
	params []string // nil for one without arguments
	body   []token
}

// file is a source file, without comments and without what `#if 0` leaves out.
type file struct {
	name   string
	tokens []token
	macros []macro
}

// condition is an #if: whether its branch is compiled nowhere, only by Windows, or not by Windows.
type condition struct{ never, windows, notWindows bool }

// lex takes a file apart. It never fails: what is no C++ gives tokens that nobody looks for.
func lex(name, source string) *file {
	l := &lexer{file: &file{name: name}, rest: strings.ReplaceAll(source, "\\\n", " "), windowsFile: strings.Contains(strings.ToLower(name), ".windows.")}
	for l.line(); l.rest != ""; {
		l.next()
	}
	return l.file
}

type lexer struct {
	file        *file
	rest        string
	stack       []condition
	windowsFile bool
}

// state says whether tokens are left out, or are for Windows.
func (l *lexer) state() (never, windows bool) {
	windows = l.windowsFile
	for _, c := range l.stack {
		never = never || c.never
		windows = windows || c.windows
	}
	return never, windows
}

// line is called at the beginning of each line, for directives.
func (l *lexer) line() {
	for {
		trimmed := strings.TrimLeft(l.rest, " \t")
		if !strings.HasPrefix(trimmed, "#") {
			return
		}
		directive, rest, _ := strings.Cut(trimmed[1:], "\n")
		// A comment may begin in the line and go on beyond it.
		if i := strings.Index(directive, "/*"); i >= 0 && !strings.Contains(directive[i:], "*/") {
			_, after, _ := strings.Cut(rest, "*/")
			directive, rest = directive[:i], after
		}
		l.rest = rest
		l.directive(strings.TrimSpace(directive))
	}
}

func (l *lexer) directive(text string) {
	name, rest, _ := strings.Cut(strings.ReplaceAll(text, "\t", " "), " ")
	rest = strings.TrimSpace(rest)
	rest, _, _ = strings.Cut(rest, "//")
	top := len(l.stack) - 1
	switch name {
	case "if", "ifdef", "ifndef":
		l.stack = append(l.stack, conditionOf(name, rest))
	case "elif":
		if top >= 0 {
			l.stack[top] = conditionOf("if", rest)
		}
	case "else":
		if top >= 0 {
			c := l.stack[top]
			l.stack[top] = condition{windows: c.notWindows, notWindows: c.windows}
		}
	case "endif":
		if top >= 0 {
			l.stack = l.stack[:top]
		}
	case "define":
		l.define(rest)
	}
}

// conditionOf recognises the conditions by which HTCondor tells Windows from the rest.
func conditionOf(name, rest string) condition {
	rest = strings.TrimSpace(rest)
	if name == "if" && rest == "0" {
		return condition{never: true}
	}
	is := rest == "WIN32" || rest == "WINDOWS" || rest == "_WIN32"
	not := rest == "UNIX" || rest == "LINUX"
	switch bare := strings.NewReplacer("defined", "", "(", "", ")", "", " ", "").Replace(rest); {
	case name != "if":
	case bare == "WIN32" || bare == "WINDOWS" || bare == "_WIN32":
		is = true
	case bare == "!WIN32" || bare == "!WINDOWS" || bare == "!_WIN32" || bare == "UNIX" || bare == "LINUX":
		not = true
	}
	if name == "ifndef" {
		is, not = not, is
	}
	return condition{windows: is, notWindows: not}
}

func (l *lexer) define(rest string) {
	never, windows := l.state()
	if never {
		return
	}
	end := strings.IndexFunc(rest, func(c rune) bool { return !isWord(c) })
	if end < 0 {
		return
	}
	m := macro{name: rest[:end]}
	rest = rest[end:]
	if strings.HasPrefix(rest, "(") {
		params, body, _ := strings.Cut(rest[1:], ")")
		m.params = []string{}
		for _, p := range strings.Split(params, ",") {
			m.params = append(m.params, strings.TrimSpace(p))
		}
		rest = body
	}
	inner := &lexer{file: &file{}, rest: rest, windowsFile: windows}
	for inner.rest != "" {
		inner.next()
	}
	m.body = inner.file.tokens
	l.file.macros = append(l.file.macros, m)
}

func isWord(c rune) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// next takes one token, comment, space or end of a line from the rest.
func (l *lexer) next() {
	s := l.rest
	switch {
	case s[0] == '\n':
		l.rest = s[1:]
		l.line()
	case s[0] <= ' ':
		l.rest = s[1:]
	case strings.HasPrefix(s, "//"):
		if _, l.rest, _ = strings.Cut(s, "\n"); l.rest != "" {
			l.line()
		}
	case strings.HasPrefix(s, "/*"):
		_, l.rest, _ = strings.Cut(s[2:], "*/")
	case strings.HasPrefix(s, `R"`):
		l.raw(s[2:])
	case s[0] == '"':
		value, rest := quoted(s, '"')
		l.rest = rest
		l.add(text, value)
	case s[0] == '\'':
		value, rest := quoted(s, '\'')
		l.rest = rest
		l.add(symbol, "'"+value+"'")
	case isWord(rune(s[0])) || s[0] >= utf8.RuneSelf:
		end := strings.IndexFunc(s, func(c rune) bool { return !isWord(c) })
		if end < 0 {
			end = len(s)
		}
		l.rest = s[max(end, 1):]
		l.add(word, s[:max(end, 1)])
	default:
		n := 1
		for _, two := range []string{"::", "->", "+=", "==", "!=", "<=", ">=", "&&", "||", "++", "--"} {
			if strings.HasPrefix(s, two) {
				n = 2
			}
		}
		l.rest = s[n:]
		l.add(symbol, s[:n])
	}
}

// raw takes a literal of the form R"x(...)x".
func (l *lexer) raw(s string) {
	mark, rest, ok := strings.Cut(s, "(")
	if !ok {
		l.rest = ""
		return
	}
	value, rest, _ := strings.Cut(rest, ")"+mark+`"`)
	l.rest = rest
	l.add(text, value)
}

// quoted is the literal at the beginning of s, and what comes after it. An end of
// the line ends it too.
func quoted(s string, quote byte) (value, rest string) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == quote:
			return b.String(), s[i+1:]
		case s[i] == '\n':
			return b.String(), s[i:]
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), ""
}

func (l *lexer) add(k kind, value string) {
	never, windows := l.state()
	if never {
		return
	}
	// Neighbouring literals are one.
	if n := len(l.file.tokens); k == text && n > 0 && l.file.tokens[n-1].kind == text {
		l.file.tokens[n-1].text += value
		return
	}
	l.file.tokens = append(l.file.tokens, token{k, value, windows})
}
