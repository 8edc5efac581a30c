package classads

const typeFamily = "types"

// typeFunctions tell the kind of a value
// (HTCondor src/classad/fnCall.cpp:isType).
var typeFunctions = []builtin{
	isKind("isUndefined", Undefined, "is undefined"),
	isKind("isError", Error, "is error"),
	isKind("isString", String, "is a string"),
	isKind("isInteger", Int, "is an integer"),
	isKind("isReal", Real, "is a real"),
	isKind("isBoolean", Bool, "is a boolean"),
	isKind("isList", List, "is a list"),
	isKind("isClassad", Record, "is an ad"),
	isKind("isAbsTime", AbsTime, "is an absolute time"),
	isKind("isRelTime", RelTime, "is a relative time"),
}

func isKind(name string, k Kind, what string) builtin {
	return builtin{
		name: name, family: typeFamily, usage: name + "(value)", summary: "true if the value " + what,
		min: 1, max: 1, variant: int(k),
		eval: func(ev *evaluator, sc *scope, c *call) Value {
			return BoolValue(c.args[0].eval(ev, sc).kind == Kind(c.fn.variant))
		},
	}
}
