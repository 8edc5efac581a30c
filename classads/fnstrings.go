package classads

import "strings"

const stringFamily = "strings"

// stringFunctions work on strings (HTCondor src/classad/fnCall.cpp).
var stringFunctions = []builtin{
	{name: "strcat", family: stringFamily, usage: "strcat(value, ...)",
		summary: "texts of the values, one after the other", min: 0, max: -1, eval: fnStrcat},
	{name: "join", family: stringFamily, usage: "join(separator, value, ...) | join([separator,] list)",
		summary: "texts of the values with the separator between", min: 0, max: -1, eval: fnJoin},
	{name: "toUpper", family: stringFamily, usage: "toUpper(value)",
		summary: "text in upper case (ASCII)", min: 1, max: 1, variant: 1, eval: fnCase},
	{name: "toLower", family: stringFamily, usage: "toLower(value)",
		summary: "text in lower case (ASCII)", min: 1, max: 1, variant: 0, eval: fnCase},
	{name: "substr", family: stringFamily, usage: "substr(string, offset [, length])",
		summary: "part of the string; negative numbers count from its end", min: 2, max: 3, eval: fnSubstr},
	{name: "strcmp", family: stringFamily, usage: "strcmp(value, value)",
		summary: "-1, 0 or 1 by the order of the texts", min: 2, max: 2, variant: 0, eval: fnStrcmp},
	{name: "stricmp", family: stringFamily, usage: "stricmp(value, value)",
		summary: "as strcmp, without regard to case", min: 2, max: 2, variant: 1, eval: fnStrcmp},
	{name: "split", family: stringFamily, usage: "split(string [, separators])",
		summary: "list of the parts between separator characters", min: 1, max: 2, eval: fnSplit},
	{name: "splitUserName", family: stringFamily, usage: "splitUserName(string)",
		summary: "{ user, domain } of user@domain", min: 1, max: 1, variant: 0, eval: fnSplitAt},
	{name: "splitSlotName", family: stringFamily, usage: "splitSlotName(string)",
		summary: "{ slot, machine } of slot@machine", min: 1, max: 1, variant: 1, eval: fnSplitAt},
}

// text evaluates an argument to its text.
func text(ev *evaluator, sc *scope, n node) Value { return toString(ev, n.eval(ev, sc)) }

func fnStrcat(ev *evaluator, sc *scope, c *call) Value {
	var b []byte
	for _, n := range c.args {
		v := text(ev, sc, n)
		if v.kind != String {
			return v
		}
		if !ev.spend(len(v.str)) {
			return Value{kind: Error}
		}
		b = append(b, v.str...)
	}
	return StringValue(string(b))
}

// fnJoin skips undefined values. The separator is the first argument; one or
// two arguments may end with a list that stands for the values.
func fnJoin(ev *evaluator, sc *scope, c *call) Value {
	args := c.args
	if n := len(args); n == 1 || n == 2 {
		if l := args[n-1].eval(ev, sc); l.kind == List {
			first := node(emptyString)
			if n == 2 {
				first = args[0]
			}
			args = append([]node{first}, l.list.items...)
			sc = within(sc, l.sc)
		}
	}
	var b []byte
	var separator string
	undefined, defined := false, false
	for i, n := range args {
		v := text(ev, sc, n)
		switch {
		case ev.failed || v.kind == Error:
			return v
		case v.kind == Undefined:
			undefined = true
			continue
		case i == 0:
			separator = v.str
			continue
		}
		if !ev.spend(len(v.str) + len(separator)) {
			return Value{kind: Error}
		}
		if len(b) > 0 {
			b = append(b, separator...)
		}
		defined = true
		b = append(b, v.str...)
	}
	if undefined && !defined {
		return Value{}
	}
	return StringValue(string(b))
}

var emptyString = &literal{StringValue("")}

func fnCase(ev *evaluator, sc *scope, c *call) Value {
	v := text(ev, sc, c.args[0])
	if v.kind != String {
		return v
	}
	change := lower
	if c.fn.variant == 1 {
		change = upper
	}
	b := []byte(v.str)
	if !ev.spend(len(b)) {
		return Value{kind: Error}
	}
	for i := range b {
		b[i] = change(b[i])
	}
	return StringValue(string(b))
}

func fnSubstr(ev *evaluator, sc *scope, c *call) Value {
	s := c.args[0].eval(ev, sc)
	at := c.args[1].eval(ev, sc)
	count := IntValue(0)
	if len(c.args) == 3 {
		count = c.args[2].eval(ev, sc)
	}
	if s.kind == Undefined || at.kind == Undefined || count.kind == Undefined {
		return Value{}
	}
	if s.kind != String || at.kind != Int || count.kind != Int {
		return ErrorValue("substr: the arguments must be a string and integers")
	}
	size := len(s.str)
	from := int(int32(at.num))
	if from < 0 {
		from = max(size+from, 0)
	}
	from = min(from, size)
	n := int(int32(count.num))
	switch {
	case n == 0 && len(c.args) == 3:
	case n <= 0:
		n = max(size-from+n, 0)
	default:
		n = min(n, size-from)
	}
	return StringValue(s.str[from : from+n])
}

func fnStrcmp(ev *evaluator, sc *scope, c *call) Value {
	a := c.args[0].eval(ev, sc)
	b := c.args[1].eval(ev, sc)
	if a.kind == Undefined || b.kind == Undefined {
		return Value{}
	}
	a, b = toString(ev, a), toString(ev, b)
	if a.kind != String || b.kind != String {
		return ErrorValue(c.fn.name + ": an argument has no text")
	}
	if c.fn.variant == 1 {
		return IntValue(sign(compareFold(a.str, b.str)))
	}
	return IntValue(int64(strings.Compare(a.str, b.str)))
}

// stringArgs evaluates the arguments, which must be strings; defaults stand
// for those not given. The second result is an error if one of them is not.
func stringArgs(ev *evaluator, sc *scope, c *call, defaults ...string) (out [4]string, _ Value) {
	copy(out[:], defaults)
	bad := false
	for i, n := range c.args {
		v := n.eval(ev, sc)
		if v.kind != String {
			bad = true
		} else if i < len(defaults) {
			out[i] = v.str
		}
	}
	if bad {
		return out, ErrorValue(c.fn.name + ": the arguments must be strings")
	}
	return out, Value{}
}

// stringList makes a list value of strings.
func stringList(ev *evaluator, items []string) Value {
	if !ev.spend(elementSize * len(items)) {
		return Value{kind: Error}
	}
	nodes := make([]node, len(items))
	literals := make([]literal, len(items))
	for i, s := range items {
		literals[i].Value = StringValue(s)
		nodes[i] = &literals[i]
	}
	return madeList(&listNode{nodes})
}

// madeList is a list that a function made. HTCondor's is of another type than
// one that was written, which =?= and =!= can tell
// (src/classad/classad/value.h:SLIST_VALUE).
func madeList(l *listNode) Value { return Value{kind: List, list: l, off: 1} }

// fnSplit drops empty parts, except between two equal separators that are not
// spaces (HTCondor src/condor_utils/compat_classad.cpp:splitArb_func).
func fnSplit(ev *evaluator, sc *scope, c *call) Value {
	args, bad := stringArgs(ev, sc, c, "", ", \t")
	if bad.kind == Error {
		return bad
	}
	s, separators := args[0], args[1]
	if !ev.spend(len(s)) {
		return Value{kind: Error}
	}
	isSeparator := byteSet(separators)
	var room [8]string
	parts := room[:0]
	last := 0
	previous := -1
	for i := 0; i < len(s); i++ {
		ch := s[i]
		if !isSeparator[ch] {
			continue
		}
		if i > last {
			parts = append(parts, s[last:i])
		} else if previous == int(ch) && !isSpace(ch) {
			parts = append(parts, "")
		}
		if !isSpace(ch) {
			previous = int(ch)
		}
		last = i + 1
	}
	if len(s) > last {
		parts = append(parts, s[last:])
	}
	return stringList(ev, parts)
}

func byteSet(s string) *[256]bool {
	var set [256]bool
	for i := 0; i < len(s); i++ {
		set[s[i]] = true
	}
	return &set
}

func fnSplitAt(ev *evaluator, sc *scope, c *call) Value {
	args, bad := stringArgs(ev, sc, c, "")
	if bad.kind == Error {
		return bad
	}
	first, second, found := strings.Cut(args[0], "@")
	if !found && c.fn.variant == 1 {
		first, second = "", first
	}
	return stringList(ev, []string{first, second})
}
