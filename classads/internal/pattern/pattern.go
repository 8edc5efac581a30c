// Package pattern matches regular expressions of the kind that PCRE2 has, on
// bytes, in the C locale: what HTCondor's ClassAd functions use. Beside what
// Go's regexp package knows it has backreferences, look-around, atomic groups
// and possessive quantifiers. It matches by backtracking, within a budget.
//
// Not supported, and reported by [Compile]: recursion and subroutine calls,
// conditional groups, branch reset, callouts, control verbs, Unicode
// properties.
package pattern

import (
	"errors"
	"fmt"
	"unsafe"
)

// Flags change the meaning of a pattern; (?i) and the like in the pattern do
// so from there on.
type Flags uint8

// The flags, with the letters they have in a pattern.
const (
	IgnoreCase   Flags = 1 << iota // i: ASCII letters match in either case
	MultiLine                      // m: ^ and $ match at the lines of the text
	DotAll                         // s: . matches a newline
	Extended                       // x: white space and #comments are ignored
	ungreedy                       // U
	noCapture                      // n
	extendedMore                   // xx
)

// Options change one match.
type Options uint8

const (
	// Anchored looks only for a match that begins where the search does.
	Anchored Options = 1 << iota
	// NotEmptyAtStart refuses an empty match where the search begins.
	NotEmptyAtStart
	// NotEmpty refuses every empty match.
	NotEmpty
)

// Pattern is a compiled pattern. It is safe for concurrent use.
type Pattern struct {
	prog   []inst
	groups int    // number of groups, with the whole match
	loops  int    // slots that loops use
	first  *set   // bytes a match can begin with, nil if any
	needs  []*set // a match has a byte of each
	begins place
	run    *set // behind a byte of it no match begins that could not begin there, nil if there is no such byte
}

// Error says what is wrong with a pattern.
type Error struct {
	Pattern string
	Offset  int // bytes
	What    string
}

func (e *Error) Error() string {
	p := e.Pattern
	const most = 64
	if len(p) > most {
		p = p[:most] + "..."
	}
	return fmt.Sprintf("pattern %q: %s at byte %d", p, e.What, e.Offset)
}

// ErrBudget is returned by searches when one takes more steps or memory
// than it may.
var ErrBudget = errors.New("the search for a pattern takes too many steps")

// Bounds of what Compile accepts, and of the memory of a match.
const (
	maxPattern = 64 << 10 // bytes
	maxProgram = 256 << 10
	maxNesting = 250 // PCRE2's parens_nest_limit
	maxRepeat  = 65535
	maxStack   = 1 << 20 // entries of 16 bytes, near PCRE2's heap limit
)

// Size is about how many bytes of memory the pattern takes.
func (p *Pattern) Size() int { return len(p.prog) * int(unsafe.Sizeof(inst{})) }

// Compile reads a pattern.
func Compile(expr string, flags Flags) (*Pattern, error) {
	if len(expr) > maxPattern {
		return nil, &Error{expr, 0, fmt.Sprintf("longer than %d bytes", maxPattern)}
	}
	first := newParser(expr, flags, true)
	if _, err := first.parse(); err != nil {
		return nil, err
	}
	p := newParser(expr, flags, false)
	p.total, p.names = first.groups, first.names
	root, err := p.parse()
	if err != nil {
		return nil, err
	}
	if wrong := measure(root); wrong != "" {
		return nil, &Error{expr, len(expr), wrong}
	}
	c := &compiler{}
	c.emit(inst{op: opSave, n: 0})
	c.node(root)
	c.emit(inst{op: opSave, n: 1})
	c.emit(inst{op: opAccept})
	if c.full {
		return nil, &Error{expr, len(expr), "too large"}
	}
	out := &Pattern{prog: c.prog, groups: p.groups + 1, loops: c.loops}
	references := refers(root)
	out.first, out.needs, out.begins, out.run = firsts(root), needed(root), begins(root, references), runs(root, references)
	return out, nil
}
