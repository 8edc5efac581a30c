package classads

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const environmentFamily = "arguments and environment"

// environmentFunctions convert the forms in which a job's arguments and
// environment are written (HTCondor src/condor_utils/compat_classad.cpp).
var environmentFunctions = []builtin{
	{name: "envV1ToV2", family: environmentFamily, usage: "envV1ToV2(string)",
		summary: "environment in the new form of one in the old form", min: 1, max: 1, eval: fnEnvV1ToV2},
	{name: "mergeEnvironment", family: environmentFamily, usage: "mergeEnvironment(string, ...)",
		summary: "environments in the new form made one, the last value of a name counts", min: 0, max: -1, eval: fnMergeEnvironment},
	{name: "listToArgs", family: environmentFamily, usage: "listToArgs(list [, version])",
		summary: "arguments string of a list of strings", min: 1, max: 2, eval: fnListToArgs},
	{name: "argsToList", family: environmentFamily, usage: "argsToList(string [, version])",
		summary: "list of the arguments in an arguments string", min: 1, max: 2, eval: fnArgsToList},
}

const argSpaces = " \t\n\r"

// splitArgs splits the new form: words between white space, '...' quotes and
// ” within it is a quote (HTCondor src/condor_utils/condor_arglist.cpp:split_args).
func splitArgs(s string) ([]string, error) {
	var words []string
	var word []byte
	inWord := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'':
			inWord = true
			i++
			for {
				end := strings.IndexByte(s[i:], '\'')
				if end < 0 {
					return nil, errors.New("a quote is not closed")
				}
				word = append(word, s[i:i+end]...)
				i += end
				if i+1 >= len(s) || s[i+1] != '\'' {
					break
				}
				word = append(word, '\'')
				i += 2
			}
		case strings.IndexByte(argSpaces, c) >= 0:
			if inWord {
				words = append(words, string(word))
				word, inWord = word[:0], false
			}
		default:
			inWord = true
			word = append(word, c)
		}
	}
	if inWord {
		words = append(words, string(word))
	}
	return words, nil
}

// joinArgs is the inverse of splitArgs, written as HTCondor writes it
// (src/condor_utils/condor_arglist.cpp:append_arg).
func joinArgs(words []string) string {
	var b []byte
	for _, w := range words {
		if len(b) > 0 {
			b = append(b, ' ')
		}
		if w == "" {
			b = append(b, "''"...)
		}
		for i := 0; i < len(w); i++ {
			if w[i] != '\'' && strings.IndexByte(argSpaces, w[i]) < 0 {
				b = append(b, w[i])
				continue
			}
			if n := len(b); n > 0 && b[n-1] == '\'' {
				b = b[:n-1]
			} else {
				b = append(b, '\'')
			}
			if w[i] == '\'' {
				b = append(b, '\'')
			}
			b = append(b, w[i], '\'')
		}
	}
	return string(b)
}

// argsVersion evaluates the optional second argument, 1 or 2.
func argsVersion(ev *evaluator, sc *scope, c *call) (int, Value) {
	if len(c.args) < 2 {
		return 2, Value{}
	}
	v := c.args[1].eval(ev, sc)
	if n := int32(v.num); v.kind == Int && (n == 1 || n == 2) {
		return int(n), Value{}
	}
	return 0, ErrorValue(c.fn.name + ": the version must be 1 or 2")
}

func fnArgsToList(ev *evaluator, sc *scope, c *call) Value {
	version, bad := argsVersion(ev, sc, c)
	if version == 0 {
		return bad
	}
	v := c.args[0].eval(ev, sc)
	if v.kind != String {
		return ErrorValue("argsToList: the arguments must be a string")
	}
	if !ev.spend(2 * len(v.str)) {
		return Value{kind: Error}
	}
	if version == 1 {
		return stringList(ev, strings.FieldsFunc(v.str, func(r rune) bool { return strings.ContainsRune(argSpaces, r) }))
	}
	words, err := splitArgs(v.str)
	if err != nil {
		return ErrorValue("argsToList: " + err.Error())
	}
	return stringList(ev, words)
}

func fnListToArgs(ev *evaluator, sc *scope, c *call) Value {
	version, bad := argsVersion(ev, sc, c)
	if version == 0 {
		return bad
	}
	l := c.args[0].eval(ev, sc)
	if l.kind != List {
		return ErrorValue("listToArgs: the argument must be a list")
	}
	words := make([]string, len(l.list.items))
	inside := within(sc, l.sc)
	for i, n := range l.list.items {
		v := n.eval(ev, inside)
		if v.kind != String {
			return ErrorValue("listToArgs: an element is not a string")
		}
		if !ev.spend(4 * (len(v.str) + 1)) {
			return Value{kind: Error}
		}
		if words[i] = v.str; version == 1 && strings.ContainsAny(v.str, argSpaces) {
			return ErrorValue("listToArgs: version 1 cannot hold white space in an argument")
		}
	}
	if version == 1 {
		return StringValue(joinV1(words))
	}
	return StringValue(joinArgs(words))
}

// joinV1 joins with spaces; empty words at the beginning leave none.
func joinV1(words []string) string {
	var b strings.Builder
	for _, w := range words {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w)
	}
	return b.String()
}

// variables is an environment under construction. A nil value marks an entry
// without =, which is a macro to be expanded later.
type variables map[string]*string

// set takes NAME=value (HTCondor src/condor_utils/env.cpp:SetEnvWithErrorMessage).
func (vs variables) set(entry string) error {
	name, value, found := strings.Cut(entry, "=")
	switch {
	case found && name != "":
		vs[name] = &value
	case !found && strings.Contains(entry, "$$"):
		vs[entry] = nil
	default:
		return fmt.Errorf("%q is not of the form NAME=value", shorten(entry))
	}
	return nil
}

// String returns the new form, in the order of the names.
func (vs variables) String() string {
	words := make([]string, 0, len(vs))
	for _, name := range slices.Sorted(maps.Keys(vs)) {
		if value := vs[name]; value != nil {
			name += "=" + *value
		}
		words = append(words, name)
	}
	return joinArgs(words)
}

func fnMergeEnvironment(ev *evaluator, sc *scope, c *call) Value {
	vs := make(variables)
	for _, n := range c.args {
		v := n.eval(ev, sc)
		if v.kind == Undefined {
			continue
		}
		if v.kind != String {
			return ErrorValue("mergeEnvironment: an argument is not a string")
		}
		if !ev.spend(elementSize + 8*len(v.str)) {
			return Value{kind: Error}
		}
		words, err := splitArgs(v.str)
		if err != nil {
			return ErrorValue("mergeEnvironment: " + err.Error())
		}
		for _, w := range words {
			if err := vs.set(w); err != nil {
				return ErrorValue("mergeEnvironment: " + err.Error())
			}
		}
	}
	return StringValue(vs.String())
}

// v1Delimiters may be the first character of the old form, to say what separates
// entries.
const v1Delimiters = "!#$%&*+,-/:;<>?@^`|~\x1F"

func fnEnvV1ToV2(ev *evaluator, sc *scope, c *call) Value {
	v := c.args[0].eval(ev, sc)
	if v.kind == Undefined {
		return v
	}
	if v.kind != String {
		return ErrorValue("envV1ToV2: the argument must be a string")
	}
	if !ev.spend(elementSize + 8*len(v.str)) {
		return Value{kind: Error}
	}
	s, delimiter := v.str, byte(';')
	if s != "" && strings.IndexByte(v1Delimiters, s[0]) >= 0 {
		delimiter = s[0]
		s = s[1:]
	}
	vs := make(variables)
	for s != "" {
		s = strings.TrimLeft(s, argSpaces)
		end := strings.IndexAny(s, "\n"+string(rune(delimiter)))
		entry := s
		if end >= 0 {
			entry, s = s[:end], s[end+1:]
		} else {
			s = ""
		}
		if entry == "" {
			continue
		}
		if err := vs.set(entry); err != nil {
			return ErrorValue("envV1ToV2: " + err.Error())
		}
	}
	return StringValue(vs.String())
}
