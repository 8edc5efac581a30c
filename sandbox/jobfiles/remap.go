package jobfiles

import (
	"fmt"
	"strings"
)

// Remaps is the value of TransferOutputRemaps or TransferInputRemaps:
// "name=target;name=target". Blanks around names are not part of them, nor are any tabs
// and newlines; "\;" and "\=" are literal.
type Remaps map[string]string

// maxRemaps is how often a remap may lead to another one
// (MAX_REMAP_RECURSIONS).
const maxRemaps = 128

// ParseRemaps reads remaps as src/condor_utils/filename_tools_cpp.cpp:
// filename_remap_find does. There are no errors: it skips a field that is not a pair.
func ParseRemaps(text string) Remaps {
	text = strings.NewReplacer("\t", "", "\n", "").Replace(text)
	out := Remaps{}
	for {
		before := text
		name, rest, ok := remapField(text, '=')
		if !ok {
			return out
		}
		// A field without "=" before this one: skip it. C++ looks at the
		// name after taking escapes out of it and goes on as many bytes
		// further as it finds there.
		if i := strings.IndexByte(name, ';'); i >= 0 {
			if i+1 >= len(before) {
				return out
			}
			text = before[i+1:]
			continue
		}
		target, rest, more := remapField(rest, ';')
		if _, taken := out[name]; !taken { // the first one counts
			out[name] = target
		}
		if !more {
			return out
		}
		text = rest
	}
}

// remapField takes the text up to a delimiter that is not escaped, and trims
// it. It reports whether there was a delimiter.
func remapField(text string, delimiter byte) (field, rest string, found bool) {
	var b strings.Builder
	b.Grow(min(len(text), 256))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\\' && i+1 < len(text) && text[i+1] == delimiter {
			i++
			c = delimiter
		} else if c == delimiter {
			return strings.Trim(b.String(), " \r\v\f"), text[i+1:], true
		}
		b.WriteByte(c)
	}
	return strings.Trim(b.String(), " \r\v\f"), "", false
}

// Find looks a name up: itself, or else the longest directory above it that
// is remapped. The result is looked up again. It returns false if nothing
// applies, and an error if the remaps go round in circles.
func (m Remaps) Find(name string) (string, bool, error) {
	if len(m) == 0 {
		return "", false, nil
	}
	return m.findAt(name, 0)
}

func (m Remaps) findAt(name string, level int) (string, bool, error) {
	if level > maxRemaps {
		return "", false, fmt.Errorf("remaps resulted in a cycle: %s", name)
	}
	for end := len(name); end >= 0; end = strings.LastIndexByte(name[:end], '/') {
		target, ok := m[name[:end]]
		if !ok {
			continue
		}
		again, ok, err := m.findAt(target, level+1)
		if err != nil {
			return "", false, err
		}
		if ok {
			target = again
		}
		return target + name[end:], true, nil
	}
	return "", false, nil
}
