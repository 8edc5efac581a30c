package classads

import (
	"math"
	"strings"
)

const stringListFamily = "string lists"

const (
	listSum = iota
	listAvg
	listMin
	listMax
)

const (
	listMember = 1 << iota
	listFold   // without regard to case
)

// stringListFunctions work on strings that are lists of items between
// delimiter characters (HTCondor src/condor_utils/compat_classad.cpp).
var stringListFunctions = []builtin{
	{name: "stringListSize", family: stringListFamily, usage: "stringListSize(list [, delimiters])",
		summary: "number of items", min: 1, max: 2, eval: fnStringListSize},
	{name: "stringListSum", family: stringListFamily, usage: "stringListSum(list [, delimiters])",
		summary: "sum of the numbers", min: 1, max: 2, variant: listSum, eval: fnStringListNumbers},
	{name: "stringListAvg", family: stringListFamily, usage: "stringListAvg(list [, delimiters])",
		summary: "average of the numbers", min: 1, max: 2, variant: listAvg, eval: fnStringListNumbers},
	{name: "stringListMin", family: stringListFamily, usage: "stringListMin(list [, delimiters])",
		summary: "least number", min: 1, max: 2, variant: listMin, eval: fnStringListNumbers},
	{name: "stringListMax", family: stringListFamily, usage: "stringListMax(list [, delimiters])",
		summary: "greatest number", min: 1, max: 2, variant: listMax, eval: fnStringListNumbers},
	{name: "stringListMember", family: stringListFamily, usage: "stringListMember(item, list [, delimiters])",
		summary: "true if the item is in the list", min: 2, max: 3, variant: listMember, eval: fnStringListMember},
	{name: "stringListIMember", family: stringListFamily, usage: "stringListIMember(item, list [, delimiters])",
		summary: "as stringListMember, without regard to case", min: 2, max: 3, variant: listMember | listFold, eval: fnStringListMember},
	{name: "stringListSubsetMatch", family: stringListFamily, usage: "stringListSubsetMatch(items, list [, delimiters])",
		summary: "true if every item is in the list", min: 2, max: 3, variant: 0, eval: fnStringListMember},
	{name: "stringListISubsetMatch", family: stringListFamily, usage: "stringListISubsetMatch(items, list [, delimiters])",
		summary: "as stringListSubsetMatch, without regard to case", min: 2, max: 3, variant: listFold, eval: fnStringListMember},
	{name: "stringListsIntersect", family: stringListFamily, usage: "stringListsIntersect(list, list [, delimiters])",
		summary: "true if the lists have an item in common", min: 2, max: 3, eval: fnStringListsIntersect},
	{name: "stringList_regexpMember", family: stringListFamily, usage: "stringList_regexpMember(pattern, list [, delimiters [, options]])",
		summary: "true if an item matches the pattern", min: 2, max: 4, eval: fnStringListRegexpMember},
}

// items calls yield for each item of a string list, without the white space around
// it, until it returns false. It skips empty items (HTCondor
// src/condor_utils/stl_string_utils.cpp:StringTokenIterator).
func items(list, delimiters string, yield func(string) bool) {
	isDelimiter := byteSet(delimiters)
	for i := 0; i < len(list); {
		for i < len(list) && (isDelimiter[list[i]] || isSpace(list[i])) {
			i++
		}
		from := i
		for i < len(list) && !isDelimiter[list[i]] {
			i++
		}
		if i > from && !yield(strings.TrimRight(list[from:i], spaces)) {
			return
		}
	}
}

func fnStringListSize(ev *evaluator, sc *scope, c *call) Value {
	args, bad := stringArgs(ev, sc, c, "", ", ")
	if bad.kind == Error {
		return bad
	}
	var n int64
	items(args[0], args[1], func(string) bool { n++; return true })
	return IntValue(n)
}

func fnStringListNumbers(ev *evaluator, sc *scope, c *call) Value {
	args, bad := stringArgs(ev, sc, c, "", ", ")
	if bad.kind == Error {
		return bad
	}
	var total float64
	switch c.fn.variant {
	case listMin:
		total = math.MaxFloat32
	case listMax:
		total = 0x1p-126 // FLT_MIN, HTCondor's start: a list of negative numbers has this maximum
	}
	count, isReal, ok := 0, false, true
	items(args[0], args[1], func(item string) bool {
		count++
		r, number := scanReal(item)
		if !number {
			ok = false
			return false
		}
		isReal = isReal || strings.Trim(item, "+-0123456789") != ""
		switch c.fn.variant {
		case listMin:
			if r < total {
				total = r
			}
		case listMax:
			if r > total {
				total = r
			}
		default:
			total += r
		}
		return true
	})
	switch {
	case !ok:
		return ErrorValue(c.fn.name + ": an item is not a number")
	case count == 0 && c.fn.variant <= listAvg:
		return RealValue(0)
	case count == 0:
		return Value{}
	case c.fn.variant == listAvg:
		total /= float64(count)
	}
	if isReal {
		return RealValue(total)
	}
	return IntValue(truncate(total))
}

func fnStringListMember(ev *evaluator, sc *scope, c *call) Value {
	in := [3]string{2: ", \t\r\n"}
	undefined := 0
	bad := false
	for i, n := range c.args {
		v := n.eval(ev, sc)
		switch {
		case v.kind == String:
			in[i] = v.str
		case v.kind != Undefined:
			bad = true
		case i < 2:
			undefined++
		}
	}
	if bad {
		return ErrorValue(c.fn.name + ": the arguments must be strings")
	}
	if undefined == 2 {
		return Value{}
	}
	if !ev.spend(elementSize * (len(in[1]) + 1) / 2) {
		return Value{kind: Error}
	}
	fold := func(item string) string { return item }
	if c.fn.variant&listFold != 0 {
		fold = func(item string) string { return string(appendLower(nil, item)) }
	}
	set := make(map[string]bool)
	items(in[1], in[2], func(item string) bool {
		set[fold(item)] = true
		return true
	})
	if c.fn.variant&listMember != 0 {
		return BoolValue(set[fold(in[0])])
	}
	subset := in[0] == "" // a list of delimiters alone is no subset
	items(in[0], in[2], func(item string) bool {
		subset = set[fold(item)]
		return subset
	})
	return BoolValue(subset)
}

func fnStringListsIntersect(ev *evaluator, sc *scope, c *call) Value {
	var in [3]string
	var failed, undefined, wrong bool
	for i, n := range c.args {
		v := ev.attempt(n, sc)
		switch v.kind {
		case String:
			in[i] = v.str
		case Error:
			failed = true
		case Undefined:
			undefined = true
		default:
			wrong = true
		}
	}
	if undefined && !failed {
		return Value{}
	}
	if failed || wrong {
		return ErrorValue("stringListsIntersect: the arguments must be strings")
	}
	delimiters := in[2]
	if delimiters == "" {
		delimiters = " ,"
	}
	if !ev.spend(elementSize * (len(in[1]) + 1) / 2) {
		return Value{kind: Error}
	}
	isDelimiter := func(r rune) bool { return r < 256 && strings.IndexByte(delimiters, byte(r)) >= 0 }
	set := make(map[string]bool)
	for _, s := range strings.FieldsFunc(in[1], isDelimiter) {
		set[s] = true
	}
	for _, s := range strings.FieldsFunc(in[0], isDelimiter) {
		if set[s] {
			return BoolValue(true)
		}
	}
	return BoolValue(false)
}

func fnStringListRegexpMember(ev *evaluator, sc *scope, c *call) Value {
	args, bad := stringArgs(ev, sc, c, "", "", ", ", "")
	if bad.kind == Error {
		return bad
	}
	p, err := ev.pattern(c, args[0], patternFlags(strings.ToLower(args[3])))
	if err != nil {
		return ErrorValue("stringList_regexpMember: " + err.Error())
	}
	var result Value
	m := membership{p: p}
	items(args[1], args[2], func(item string) bool {
		found, failure := m.has(ev, item)
		if result = BoolValue(found); failure.kind == Error {
			result = failure
		}
		return !found && failure.kind != Error
	})
	return result
}
