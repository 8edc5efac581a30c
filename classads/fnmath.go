package classads

import (
	"math"
	"math/rand/v2"
)

const mathFamily = "mathematics"

const (
	roundDown = iota
	roundUp
	roundNearest
)

// mathFunctions calculate (HTCondor src/classad/fnCall.cpp).
var mathFunctions = []builtin{
	{name: "floor", family: mathFamily, usage: "floor(number)", summary: "greatest integer not above",
		min: 1, max: 1, variant: roundDown, eval: fnRound},
	{name: "ceil", family: mathFamily, usage: "ceil(number)", summary: "least integer not below",
		min: 1, max: 1, variant: roundUp, eval: fnRound},
	{name: "ceiling", family: mathFamily, usage: "ceiling(number)", summary: "least integer not below",
		min: 1, max: 1, variant: roundUp, eval: fnRound},
	{name: "round", family: mathFamily, usage: "round(number)", summary: "nearest integer, of two the even one",
		min: 1, max: 1, variant: roundNearest, eval: fnRound},
	{name: "pow", family: mathFamily, usage: "pow(base, exponent)", summary: "power; an integer for integers with exponent >= 0",
		min: 2, max: 2, eval: fnPow},
	{name: "quantize", family: mathFamily, usage: "quantize(number, step | list)",
		summary: "next multiple of the step, or the first element of the list that is not less", min: 2, max: 2, eval: fnQuantize},
	{name: "random", family: mathFamily, usage: "random([limit])",
		summary: "random number from 0 to below the limit, of the limit's kind", min: 0, max: 1, eval: fnRandom},
}

func fnRound(ev *evaluator, sc *scope, c *call) Value {
	v := c.args[0].eval(ev, sc)
	if v.kind == Int {
		return v
	}
	r := toReal(v)
	if r.kind != Real {
		return ErrorValue(c.fn.name + ": the argument is not a number")
	}
	switch c.fn.variant {
	case roundDown:
		return IntValue(truncate(math.Floor(r.float())))
	case roundUp:
		return IntValue(truncate(math.Ceil(r.float())))
	}
	return IntValue(truncate(math.RoundToEven(r.float())))
}

func fnPow(ev *evaluator, sc *scope, c *call) Value {
	a := c.args[0].eval(ev, sc)
	b := c.args[1].eval(ev, sc)
	if a.kind == Int && b.kind == Int && b.num >= 0 {
		return IntValue(truncate(power(float64(a.num), float64(b.num)) + 0.5))
	}
	x, y := toReal(a), toReal(b)
	if x.kind != Real || y.kind != Real {
		return ErrorValue("pow: an argument is not a number")
	}
	return RealValue(power(x.float(), y.float()))
}

func fnQuantize(ev *evaluator, sc *scope, c *call) Value {
	v := c.args[0].eval(ev, sc)
	step := c.args[1].eval(ev, sc)
	x := toReal(v)
	if x.kind != Real {
		return ErrorValue("quantize: the first argument is not a number")
	}
	if step.kind == List {
		list, inside := step.list.items, within(sc, step.sc)
		step = RealValue(0)
		for _, n := range list {
			step = n.eval(ev, inside)
			if ev.failed {
				return step
			}
			s := toReal(step)
			if s.kind != Real {
				return ErrorValue("quantize: an element of the list is not a number")
			}
			if s.float() >= x.float() {
				return step
			}
		}
	}
	s := toReal(step)
	if s.kind != Real {
		return ErrorValue("quantize: the second argument is not a number")
	}
	if step.kind == Int {
		switch {
		case step.num == 0:
			return v
		case v.kind == Int:
			sum := intArithmetic(opDivide, v.num+step.num-1, step.num)
			return IntValue(sum.num * step.num)
		}
		return RealValue(math.Ceil(x.float()/float64(step.num)) * float64(step.num))
	}
	const nothing = 1e-8 // a step this small is none
	if math.Abs(s.float()) <= nothing {
		return v
	}
	return RealValue(math.Ceil(x.float()/s.float()) * s.float())
}

func (ev *evaluator) random() float64 {
	if ev.env.Random != nil {
		return ev.env.Random()
	}
	return rand.Float64()
}

func fnRandom(ev *evaluator, sc *scope, c *call) Value {
	limit := RealValue(1)
	if len(c.args) == 1 {
		limit = c.args[0].eval(ev, sc)
	}
	switch limit.kind {
	case Int:
		n := int32(limit.num)
		if n <= 0 {
			return ev.fail("random: the limit must be greater than 0")
		}
		return IntValue(int64(ev.random() * float64(n)))
	case Real:
		if limit.float() <= 0 {
			return ev.fail("random: the limit must be greater than 0")
		}
		return RealValue(ev.random() * limit.float())
	}
	return ErrorValue("random: the limit must be a number")
}
