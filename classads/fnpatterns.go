package classads

import (
	"errors"
	"strings"

	"podstarter/classads/internal/pattern"
)

const patternFamily = "patterns"

const (
	substituteMatch = iota // yields the replacement alone
	substituteFirst        // yields the whole text
	substituteAll
)

// patternFunctions match regular expressions, of the kind PCRE has
// (HTCondor src/classad/fnCall.cpp:regexp_helper). Options are letters: i
// ignores case, m lets ^ and $ match at lines, s lets . match a newline,
// x ignores white space in the pattern.
var patternFunctions = []builtin{
	{name: "regexp", family: patternFamily, usage: "regexp(pattern, string [, options])",
		summary: "true if the pattern matches", min: 2, max: 3, eval: fnRegexp},
	{name: "regexpMember", family: patternFamily, usage: "regexpMember(pattern, list [, options])",
		summary: "true if the pattern matches an element", min: 2, max: 3, eval: fnRegexpMember},
	{name: "regexps", family: patternFamily, usage: "regexps(pattern, string, replacement [, options])",
		summary: `the replacement with \1 and so on filled in; options f and g make it replace and replaceAll`,
		min:     3, max: 4, variant: substituteMatch, eval: fnSubstitute},
	{name: "replace", family: patternFamily, usage: "replace(pattern, string, replacement [, options])",
		summary: "the string with the first match replaced", min: 3, max: 4, variant: substituteFirst, eval: fnSubstitute},
	{name: "replaceAll", family: patternFamily, usage: "replaceAll(pattern, string, replacement [, options])",
		summary: "the string with every match replaced", min: 3, max: 4, variant: substituteAll, eval: fnSubstitute},
}

func patternFlags(options string) pattern.Flags {
	var f pattern.Flags
	for _, o := range [...]struct {
		letter byte
		flag   pattern.Flags
	}{{'i', pattern.IgnoreCase}, {'m', pattern.MultiLine}, {'s', pattern.DotAll}, {'x', pattern.Extended}} {
		if strings.IndexByte(options, o.letter) >= 0 {
			f |= o.flag
		}
	}
	return f
}

// match tells whether a pattern matches; the second value is an error if the
// search took too many steps.
func (ev *evaluator) match(p *pattern.Pattern, s string) (bool, Value) {
	found, err := p.Found(s, 0, &ev.search, &ev.room)
	if err != nil {
		return false, ErrorValue(err.Error())
	}
	return found, Value{}
}

// membership looks for an element that a pattern matches. HTCondor takes an element whose search fails for one that does not
// match, and has as many steps for the next one. Here all searches share their steps. So a failure is no match only if the search
// had most of the steps and no element comes after it; else nobody knows what HTCondor would have found.
type membership struct {
	p       *pattern.Pattern
	pending Value // the failure of the last search, if it counts as soon as another element comes
}

// mostSteps is how many steps a search has left that has about as many as in HTCondor.
const mostSteps = searchSteps / 10 * 9

// has tells whether an element matches; the second value is an error if that ends the search of all elements.
func (m *membership) has(ev *evaluator, s string) (bool, Value) {
	if m.pending.kind == Error {
		return false, m.pending
	}
	steps := ev.search
	found, failure := ev.match(m.p, s)
	switch {
	case failure.kind != Error || ev.search > 0: // that was not for want of steps
		return found, Value{}
	case steps < mostSteps:
		return false, failure
	}
	m.pending = failure
	return false, Value{}
}

// patternArgs evaluates the arguments of a pattern function: error before undefined
// before a wrong type. want must allow those that are not strings.
func patternArgs(ev *evaluator, sc *scope, c *call, want ...Kind) (args [4]Value, bad *Value) {
	undefined, wrong, failed := false, false, false
	for i, n := range c.args {
		v := n.eval(ev, sc)
		args[i] = v
		failed = failed || v.kind == Error
		undefined = undefined || v.kind == Undefined
		wrong = wrong || v.kind != want[i]
	}
	switch {
	case failed || wrong && !undefined:
		e := ErrorValue(c.fn.name + ": an argument is not of the kind it must be")
		return args, &e
	case undefined:
		return args, &Value{}
	}
	return args, nil
}

func fnRegexp(ev *evaluator, sc *scope, c *call) Value {
	args, bad := patternArgs(ev, sc, c, String, String, String)
	if bad != nil {
		return *bad
	}
	p, err := ev.pattern(c, args[0].str, patternFlags(args[2].str))
	if err != nil {
		return ErrorValue("regexp: " + err.Error())
	}
	found, failure := ev.match(p, args[1].str)
	if failure.kind == Error {
		return failure
	}
	return BoolValue(found)
}

func fnRegexpMember(ev *evaluator, sc *scope, c *call) Value {
	args, bad := patternArgs(ev, sc, c, String, List, String)
	if bad != nil {
		return *bad
	}
	result := BoolValue(false)
	p, err := ev.pattern(c, args[0].str, patternFlags(args[2].str))
	m := membership{p: p}
	inside := within(sc, args[1].sc)
	for _, n := range args[1].list.items {
		switch v := ev.attempt(n, inside); v.kind {
		case Undefined:
			result = Value{}
		case String:
			if err != nil {
				continue // a bad pattern matches nothing here
			}
			found, failure := m.has(ev, v.str)
			if found {
				return BoolValue(true)
			}
			if failure.kind == Error {
				return failure
			}
		default:
			return ErrorValue("regexpMember: an element is not a string")
		}
	}
	return result
}

func fnSubstitute(ev *evaluator, sc *scope, c *call) Value {
	args, bad := patternArgs(ev, sc, c, String, String, String, String)
	if bad != nil {
		return *bad
	}
	options := args[3].str
	whole := c.fn.variant != substituteMatch || strings.Contains(options, "f")
	all := c.fn.variant == substituteAll || strings.Contains(options, "g")
	p, err := ev.pattern(c, args[0].str, patternFlags(options))
	if err != nil {
		return ErrorValue(c.fn.name + ": " + err.Error())
	}
	return substitute(ev, p, args[1].str, args[2].str, whole, all)
}

// substitute replaces the first or all matches. After an empty match the same
// place is tried again for one that is not empty, and so are, as in HTCondor,
// the places after matches found that way.
func substitute(ev *evaluator, p *pattern.Pattern, target, replacement string, whole, all bool) Value {
	var out []byte
	at, empty := 0, false
	text := p.In(target, &ev.search)
	for {
		var opts pattern.Options
		if empty {
			opts = pattern.Anchored | pattern.NotEmptyAtStart
		}
		if at > len(target) {
			// HTCondor tries beyond the end after an empty match there.
			return ErrorValue("a pattern that matches nothing cannot be replaced everywhere")
		}
		loc, err := text.Match(at, opts, &ev.search)
		if err != nil {
			return ErrorValue(err.Error())
		}
		if !ev.step() {
			return Value{kind: Error}
		}
		if loc == nil && empty && all {
			if at < len(target) {
				out = append(out, target[at])
			}
			at++
			empty = false
			continue
		}
		if loc == nil {
			break
		}
		if whole {
			out = append(out, target[at:loc[0]]...)
		}
		before := len(out)
		var ok bool
		if out, ok = appendReplacement(out, target, replacement, loc); !ok {
			return ErrorValue("the replacement refers to a group that took no part in the match")
		}
		if !ev.spend(len(out) - before) {
			return Value{kind: Error}
		}
		at, empty = loc[1], empty || loc[0] == loc[1]
		if !all {
			break
		}
	}
	if whole {
		out = append(out, target[at:]...)
	}
	return StringValue(string(out))
}

// appendReplacement replaces \0 to \9, and reports whether those groups exist.
func appendReplacement(dst []byte, target, replacement string, loc []int) ([]byte, bool) {
	for i := 0; i < len(replacement); i++ {
		c := replacement[i]
		if c != '\\' || i+1 == len(replacement) || !isDigit(replacement[i+1]) {
			dst = append(dst, c)
			continue
		}
		i++
		g := 2 * int(replacement[i]-'0')
		if g >= len(loc) {
			return dst, false
		}
		if loc[g] >= 0 {
			dst = append(dst, target[loc[g]:loc[g+1]]...)
		}
	}
	return dst, true
}

// compiledPattern is the pattern that a call compiled last.
type compiledPattern struct {
	text  string
	flags pattern.Flags
	*pattern.Pattern
}

// keptPattern is how large a compiled pattern may be, in bytes, to be kept for the next evaluation: some take a
// thousand times the memory of their text.
const keptPattern = 64 << 10

// stepOfPattern is how many bytes of a compiled pattern cost as much time as a step of a search.
const stepOfPattern = 16

// pattern compiles a pattern. If a call has the same pattern again, as most have,
// it returns the one compiled last.
func (ev *evaluator) pattern(c *call, text string, flags pattern.Flags) (*pattern.Pattern, error) {
	if last := c.compiled.Load(); last != nil && last.flags == flags && last.text == text {
		return last.Pattern, nil
	}
	p, err := pattern.Compile(text, flags)
	if err != nil {
		return nil, err
	}
	if !ev.spend(p.Size()) {
		return nil, errors.New(ev.reason)
	}
	if ev.search -= p.Size() / stepOfPattern; p.Size() <= keptPattern {
		c.compiled.Store(&compiledPattern{text, flags, p})
	}
	return p, nil
}
