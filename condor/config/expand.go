package config

import "strings"

// maxExpansion limits the depth and the length of an expansion, since macros may
// refer to each other in a circle.
const (
	maxExpansionDepth = 32
	maxExpansion      = 1 << 20
)

// Expand replaces $(NAME) and $(NAME:default) in text by the value of the knob
// NAME. Values in extra come before those of the configuration. A name without
// a value is replaced by nothing. Use it for text that does not come from the
// configuration, such as the -a2 argument of a starter
// (condor_utils/dprintf_config.cpp:dprintf_config); the values of knobs are
// expanded already. It leaves $$(NAME), which means an attribute of the other
// ad, and the $FUNCTION() forms as they are.
func (c *Config) Expand(text string, extra map[string]string) string {
	left := maxExpansion
	return c.expand(text, extra, 0, &left)
}

func (c *Config) expand(text string, extra map[string]string, depth int, left *int) string {
	if depth > maxExpansionDepth || !strings.Contains(text, "$(") {
		return text
	}
	var out strings.Builder
	for text != "" && out.Len() < *left {
		start := strings.Index(text, "$(")
		if start < 0 {
			break
		}
		end := closing(text[start+2:])
		if end < 0 {
			break
		}
		body, rest := text[start+2:start+2+end], text[start+2+end+1:]
		if start > 0 && text[start-1] == '$' {
			out.WriteString(text[:len(text)-len(rest)])
			text = rest
			continue
		}
		out.WriteString(text[:start])
		name, def, _ := strings.Cut(body, ":")
		value, ok := extra[strings.ToUpper(name)]
		switch {
		case ok:
		case strings.EqualFold(name, "DOLLAR"):
			value = "$"
		default:
			if value, ok = c.Lookup(name); !ok {
				value = c.expand(def, extra, depth+1, left)
			}
		}
		out.WriteString(value)
		text = rest
	}
	out.WriteString(text)
	s := out.String()
	if *left -= len(s); *left < 0 {
		*left = 0
	}
	return s
}

// closing finds the parenthesis that closes an open one and skips nested ones.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}
