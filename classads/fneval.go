package classads

import (
	"strings"

	"podstarter/classads/internal/pattern"
)

const evaluationFamily = "evaluation"

// evaluationFunctions decide whether and where expressions are evaluated
// (HTCondor src/classad/fnCall.cpp, src/condor_utils/compat_classad.cpp).
var evaluationFunctions = []builtin{
	{name: "ifThenElse", family: evaluationFamily, usage: "ifThenElse(condition, value, value)",
		summary: "the second argument if the condition is true, else the third", min: 3, max: 3, eval: fnIfThenElse},
	{name: "eval", family: evaluationFamily, usage: "eval(string)",
		summary: "value of the expression in the string", min: 1, max: 1, eval: fnEval},
	{name: "unparse", family: evaluationFamily, usage: "unparse(attribute)",
		summary: "text of the attribute's expression", min: 0, max: -1, eval: fnUnparse},
	{name: "unresolved", family: evaluationFamily, usage: "unresolved(attribute [, pattern])",
		summary: "names the attribute's expression needs from elsewhere, or whether one matches", min: 0, max: -1, eval: fnUnresolved},
	{name: "debug", family: evaluationFamily, usage: "debug(value)",
		summary: "the value, after telling Env.Trace about it", min: 1, max: 1, eval: fnDebug},
	{name: "evalInEachContext", family: evaluationFamily, usage: "evalInEachContext(expression, ads)",
		summary: "list of the values of the expression in each ad of a list", min: 2, max: 2, variant: eachValue, eval: fnEachContext},
	{name: "countMatches", family: evaluationFamily, usage: "countMatches(expression, ads)",
		summary: "number of ads of a list in which the expression is true", min: 2, max: 2, variant: eachCount, eval: fnEachContext},
}

const (
	eachValue = iota
	eachCount
)

func fnIfThenElse(ev *evaluator, sc *scope, c *call) Value {
	cond := c.args[0].eval(ev, sc)
	if t, ok := cond.truth(); ok {
		if t {
			return c.args[1].eval(ev, sc)
		}
		return c.args[2].eval(ev, sc)
	}
	if cond.exceptional() {
		return cond
	}
	return ErrorValue("ifThenElse: the condition is not a boolean")
}

// fnEval parses in the new syntax.
func fnEval(ev *evaluator, sc *scope, c *call) Value {
	v := text(ev, sc, c.args[0])
	if v.kind != String {
		return ErrorValue("eval: the argument has no text")
	}
	if ev.depth <= 0 {
		return ev.fail("the evaluation nests too deep")
	}
	// Parsing costs memory and time, which count for the evaluation.
	if !ev.spend(elementSize * len(v.str)) {
		return Value{kind: Error}
	}
	n, err := Parser{Zone: ev.zone()}.parse(v.str, false)
	if err != nil {
		return ErrorValue("eval: " + err.Error())
	}
	ev.depth--
	v = n.eval(ev, sc)
	ev.depth++
	return v
}

// fnUnparse looks only in the innermost ad, by the text of its argument.
func fnUnparse(ev *evaluator, sc *scope, c *call) Value {
	ref, ok := soleAttribute(c)
	if !ok || len(c.args) != 1 {
		return ErrorValue("unparse: the argument must be an attribute")
	}
	if sc == nil {
		return StringValue("")
	}
	name := string(ref.append(nil, printer{}))
	n := sc.self().ad.find(name, hashName(name))
	if n == nil {
		return StringValue("")
	}
	s := n.append(nil, printer{sorted: true, pretty: &layout{}})
	if !ev.spend(len(s)) {
		return Value{kind: Error}
	}
	return StringValue(string(s))
}

func soleAttribute(c *call) (*attrRef, bool) {
	if len(c.args) == 0 {
		return nil, false
	}
	ref, ok := c.args[0].(*attrRef)
	return ref, ok
}

func fnUnresolved(ev *evaluator, sc *scope, c *call) Value {
	ref, ok := soleAttribute(c)
	if !ok || len(c.args) > 2 {
		return ErrorValue("unresolved: the first argument must be an attribute")
	}
	n, where, v := ref.find(ev, sc)
	if n == nil {
		if v.exceptional() {
			return Value{}
		}
		n, where = literalNode(v), sc.self()
		if v.kind == Record {
			where = v.sc
		}
	}
	var p *pattern.Pattern
	if len(c.args) == 2 {
		text := c.args[1].eval(ev, sc)
		if text.kind != String {
			return ev.fail("unresolved: the pattern must be a string")
		}
		var err error
		if p, err = ev.pattern(c, text.str, pattern.IgnoreCase); err != nil {
			return ErrorValue("unresolved: " + err.Error())
		}
	}
	refs := newReferences(ev, true)
	complete := where != nil && refs.external(n, where)
	if ev.failed {
		return Value{kind: Error}
	}
	var names []string
	if complete {
		for _, name := range refs.sorted() {
			if len(name) > 7 && equalFold(name[:7], "target.") {
				name = name[7:]
			}
			names = append(names, name)
		}
	}
	if p == nil {
		return StringValue(strings.Join(names, ","))
	}
	for _, name := range names {
		if found, err := p.Found(name, pattern.NotEmpty, &ev.search, &ev.room); err == nil && found {
			return BoolValue(true)
		}
	}
	return BoolValue(false)
}

func fnDebug(ev *evaluator, sc *scope, c *call) Value {
	v := c.args[0].eval(ev, sc)
	if ev.env.Trace != nil && !ev.failed {
		line := c.args[0].append(nil, printer{})
		line = append(line, " --> "...)
		line = appendValue(line, v, printer{})
		if r := v.Reason(); r != "" {
			line = append(line, " ("+r+")"...)
		}
		ev.env.Trace(string(line))
	}
	return v
}

// fnEachContext evaluates an expression in each nested ad of a list. An
// attribute as first argument means its expression.
func fnEachContext(ev *evaluator, sc *scope, c *call) Value {
	expr, written := c.args[0], sc.home()
	if ref, ok := expr.(*attrRef); ok {
		if n, where, v := ref.find(ev, sc); n != nil {
			expr, written = n, where
		} else if v.kind == Record {
			expr = &adNode{v.sc.ad}
		}
		if ev.failed {
			return Value{kind: Error}
		}
	}
	list, ok := c.args[1].(*listNode)
	inside := sc
	if !ok {
		v := ev.attempt(c.args[1], sc)
		switch v.kind {
		case List:
			list, inside = v.list, within(sc, v.sc)
		case Undefined:
			if c.fn.variant == eachCount {
				return IntValue(0)
			}
			return v
		default:
			return ErrorValue(c.fn.name + ": the second argument must be a list of ads")
		}
	}
	if !ev.spend(elementSize * len(list.items)) {
		return Value{kind: Error}
	}
	count := int64(0)
	out := &listNode{items: make([]node, 0, len(list.items))}
	for _, n := range list.items {
		v := ev.inContext(expr, written, n, inside)
		if ev.steps < 0 {
			return ev.fail("the evaluation takes too many steps")
		}
		if t, ok := v.truth(); ok && t {
			count++
		}
		out.items = append(out.items, literalNode(v))
	}
	if c.fn.variant == eachCount {
		return IntValue(count)
	}
	return madeList(out)
}

// inContext evaluates an expression in the ad that nested evaluates to. In a
// match that ad, too, falls back to the other ad of the match.
func (ev *evaluator) inContext(expr node, written *scope, nested node, sc *scope) Value {
	ev.steps -= 2 * callSteps
	v := ev.attempt(nested, sc)
	switch v.kind {
	case Undefined:
		return v
	case Record:
	default:
		return ErrorValue("an element of the list is not an ad")
	}
	context := *v.sc
	for s := v.sc; s != nil && context.other == nil; s = s.parent {
		context.other = s.other
	}
	return ev.attempt(expr, within(&context, written))
}
