package config

import "strings"

// maxExpansion bounds depth and length of what Expand makes, since macros may
// name each other in a circle.
const (
	maxExpansionDepth = 32
	maxExpansion      = 1 << 20
)

// Expand replaces $(NAME) and $(NAME:default) in text by the values of the
// knobs named, extra's first; a name without value becomes nothing. It is for
// texts that do not come from the configuration, such as the -a2 argument of
// a starter (condor_utils/dprintf_config.cpp:dprintf_config); a knob's own
// value is expanded already. $$(NAME), which means the other ad's attribute,
// and the $FUNCTION() forms are left alone.
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

// closing finds the parenthesis that closes an open one, minding nested ones.
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
