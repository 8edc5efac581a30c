package batch

import (
	"fmt"
	"slices"
	"strings"
)

// text is a text of the site with placeholders such as {name}.
type text []part

// part is a piece of a text: bytes as they are, or a placeholder.
type part struct {
	plain string
	key   string
}

// parseText reads a text in which the placeholders known may be. A brace that is
// none of a placeholder is written twice, so that a placeholder which is misspelt
// is a mistake and no part of the text.
func parseText(s string, known []string) (text, error) {
	var t text
	var plain strings.Builder
	fail := func(at int, format string, args ...any) (text, error) {
		return nil, fmt.Errorf("line %d: %s; write {{ and }} for braces that begin and end no placeholder", 1+strings.Count(s[:at], "\n"), fmt.Sprintf(format, args...))
	}
	if at := strings.IndexByte(s, 0); at >= 0 {
		return fail(at, "it has a byte that is zero")
	}
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "{{"), strings.HasPrefix(s[i:], "}}"):
			plain.WriteByte(s[i])
			i += 2
		case s[i] == '{':
			key, _, closed := strings.Cut(s[i+1:], "}")
			if !closed {
				return fail(i, "a { begins no placeholder")
			}
			if !slices.Contains(known, key) {
				return fail(i, "{%s} is no placeholder here; there are %s", shorten(key, 20), strings.Join(known, ", "))
			}
			t = append(t, part{plain: plain.String()}, part{key: key})
			plain.Reset()
			i += len(key) + 2
		case s[i] == '}':
			return fail(i, "a } ends no placeholder")
		default:
			plain.WriteByte(s[i])
			i++
		}
	}
	return append(t, part{plain: plain.String()}), nil
}

// fill puts values in the places of the placeholders.
func (t text) fill(values map[string]string) string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.plain)
		b.WriteString(values[p.key])
	}
	return b.String()
}

// has reports whether a placeholder is in the text.
func (t text) has(key string) bool {
	return slices.ContainsFunc(t, func(p part) bool { return p.key == key })
}

// argv is a command with its arguments. No shell reads it.
type argv []text

// parseArgv reads a command of the site.
func parseArgv(args, known []string) (argv, error) {
	if len(args) == 0 || args[0] == "" {
		return nil, fmt.Errorf("it is empty; it must be a list of a program and its arguments")
	}
	if len(args) > maxArgs {
		return nil, fmt.Errorf("it has %d arguments, and at most %d are allowed", len(args), maxArgs)
	}
	var a argv
	for i, arg := range args {
		if len(arg) > maxArg {
			return nil, fmt.Errorf("argument %d has %d bytes, and at most %d are allowed", i, len(arg), maxArg)
		}
		t, err := parseText(arg, known)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
		if i == 0 && len(t) > 1 {
			return nil, fmt.Errorf("the program %q has a placeholder; only arguments may have some", arg)
		}
		a = append(a, t)
	}
	return a, nil
}

// Limits of a command.
const (
	maxArgs = 100
	maxArg  = 16 << 10
)

func (a argv) fill(values map[string]string) []string {
	all := make([]string, 0, len(a))
	for _, t := range a {
		all = append(all, t.fill(values))
	}
	return all
}

func (a argv) has(key string) bool {
	return slices.ContainsFunc(a, func(t text) bool { return t.has(key) })
}

// shorten makes foreign words fit for a message: one line, and no more than so
// many bytes.
func shorten(s string, most int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + " ..."
	}
	return s
}
