package usermap

import "strings"

const blanks = " \t\n"

// word reads a word or a text in double quotes (MapFile.cpp:ParseField).
func word(line string) (field, rest string) {
	line = strings.TrimLeft(line, blanks)
	if strings.HasPrefix(line, `"`) {
		return delimited(line, '"')
	}
	return plain(line)
}

// nameOrExpr is word that also reads an expression between slashes, with its options.
func nameOrExpr(line string) (field, options string, isExpr bool, rest string) {
	line = strings.TrimLeft(line, blanks)
	if !strings.HasPrefix(line, "/") {
		field, rest = word(line)
		return field, "", false, rest
	}
	field, rest = delimited(line, '/')
	after := strings.TrimLeft(rest, "iU")
	return field, rest[:len(rest)-len(after)], true, after
}

func plain(line string) (field, rest string) {
	if i := strings.IndexAny(line, blanks); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}

// delimited reads up to the delimiter that line begins with, or to the line's end. A
// backslash escapes a delimiter or another backslash; before any other character it stays.
func delimited(line string, end byte) (field, rest string) {
	var b strings.Builder
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case c == end:
			return b.String(), line[i+1:]
		case c == '\\' && i+1 < len(line):
			i++
			if line[i] != end && line[i] != '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(line[i])
		case c == '\\': // the line's last character
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}
