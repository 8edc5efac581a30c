package classads

const conversionFamily = "conversion"

// conversionFunctions convert between kinds (HTCondor src/classad/fnCall.cpp).
var conversionFunctions = []builtin{
	{name: "int", family: conversionFamily, usage: "int(value)",
		summary: "integer, cut towards zero", min: 1, max: 1,
		eval: func(ev *evaluator, sc *scope, c *call) Value { return toInt(c.args[0].eval(ev, sc)) }},
	{name: "real", family: conversionFamily, usage: "real(value)",
		summary: "real; of the strings INF, -INF and NaN too", min: 1, max: 1,
		eval: func(ev *evaluator, sc *scope, c *call) Value { return toReal(c.args[0].eval(ev, sc)) }},
	{name: "string", family: conversionFamily, usage: "string(value)",
		summary: "text of the value", min: 1, max: 1,
		eval: func(ev *evaluator, sc *scope, c *call) Value { return toString(ev, c.args[0].eval(ev, sc)) }},
	{name: "bool", family: conversionFamily, usage: "bool(value)",
		summary: "boolean of a number or of the strings true and false", min: 1, max: 1, eval: fnBool},
	{name: "absTime", family: conversionFamily, usage: "absTime([time [, offset]])",
		summary: "absolute time of Unix seconds, of a text, or now", min: 0, max: 2, eval: fnAbsTime},
	{name: "relTime", family: conversionFamily, usage: "relTime(seconds)",
		summary: "relative time of seconds or of a text", min: 1, max: 2, eval: fnRelTime},
}

func fnBool(ev *evaluator, sc *scope, c *call) Value {
	v := c.args[0].eval(ev, sc)
	switch v.kind {
	case Undefined, Bool, Error:
		return v
	case Int, Real:
		t, _ := v.truth()
		return BoolValue(t)
	case RelTime:
		return BoolValue(wholeSeconds(v) != 0)
	case String:
		switch {
		case equalFold(v.str, "true"):
			return BoolValue(true)
		case equalFold(v.str, "false"):
			return BoolValue(false)
		}
		return Value{}
	}
	return ErrorValue("bool: the value cannot be converted to a boolean")
}

func fnRelTime(ev *evaluator, sc *scope, c *call) Value {
	v := c.args[0].eval(ev, sc)
	if len(c.args) == 2 {
		return ErrorValue("relTime takes one argument")
	}
	switch v.kind {
	case Undefined, Error, RelTime:
		return v
	case Int:
		return RelTimeValue(float64(int32(v.num)))
	case Real:
		return RelTimeValue(v.float())
	case AbsTime:
		return RelTimeValue(float64(v.num))
	case String:
		// The parser has turned the text of a literal into a time. Of any other
		// text HTCondor makes 0.
		return RelTimeValue(0)
	}
	return ErrorValue("relTime: the value cannot be converted to a time")
}

func fnAbsTime(ev *evaluator, sc *scope, c *call) Value {
	if len(c.args) == 0 {
		return ev.currentTime()
	}
	v := c.args[0].eval(ev, sc)
	offset, zoned := 0, len(c.args) == 2
	if zoned {
		switch o := c.args[1].eval(ev, sc); o.kind {
		case Int:
			offset = int(int32(o.num))
		case Real:
			offset = int(truncate32(o.float()))
		case RelTime:
			offset = int(int32(wholeSeconds(o)))
		default:
			return ErrorValue("absTime: the offset must be a number of seconds")
		}
	}
	var unix int64
	switch v.kind {
	case Undefined, Error, AbsTime:
		return v
	case String:
		// The parser has turned the text of a literal into a time. HTCondor returns
		// any other text unchanged.
		return v
	case Int:
		unix = int64(int32(v.num)) // cut off, as HTCondor does
	case Real:
		unix = int64(truncate32(v.float()))
	case RelTime:
		unix = wholeSeconds(v)
	default:
		return ErrorValue("absTime: the value cannot be converted to a time")
	}
	if !zoned {
		offset = ev.offset(unix)
	}
	if offset == -1 && v.kind == Int {
		return ev.fail("absTime: the offset -1 is not allowed")
	}
	return AbsTimeValue(unix, offset)
}
