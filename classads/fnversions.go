package classads

const versionFamily = "versions"

const (
	versionOrder = iota
	versionLE
	versionLT
	versionGE
	versionGT
	versionEQ
)

// versionFunctions compare texts so that numbers in them count as numbers
// (HTCondor src/classad/fnCall.cpp:compareVersion).
var versionFunctions = []builtin{
	versionFunction("versioncmp", versionOrder, "an integer below, equal to or above 0 by their order"),
	versionFunction("versionLE", versionLE, "true if the first is not newer"),
	versionFunction("versionLT", versionLT, "true if the first is older"),
	versionFunction("versionGE", versionGE, "true if the first is not older"),
	versionFunction("versionGT", versionGT, "true if the first is newer"),
	versionFunction("versionEQ", versionEQ, "true if both are the same"),
	{name: "version_in_range", family: versionFamily, usage: "version_in_range(version, least, greatest)",
		summary: "true if the version is not below the least nor above the greatest", min: 3, max: 3, eval: fnVersionRange},
}

func versionFunction(name string, variant int, summary string) builtin {
	return builtin{name: name, family: versionFamily, usage: name + "(version, version)", summary: summary,
		min: 2, max: 2, variant: variant, eval: fnVersion}
}

func fnVersion(ev *evaluator, sc *scope, c *call) Value {
	a := c.args[0].eval(ev, sc)
	b := c.args[1].eval(ev, sc)
	if a.kind == Undefined || b.kind == Undefined {
		return Value{}
	}
	a, b = toString(ev, a), toString(ev, b)
	if a.kind != String || b.kind != String {
		return ErrorValue(c.fn.name + ": an argument has no text")
	}
	r := naturalCompare(a.str, b.str)
	switch c.fn.variant {
	case versionLE:
		return BoolValue(r <= 0)
	case versionLT:
		return BoolValue(r < 0)
	case versionGE:
		return BoolValue(r >= 0)
	case versionGT:
		return BoolValue(r > 0)
	case versionEQ:
		return BoolValue(r == 0)
	}
	return IntValue(int64(r))
}

func fnVersionRange(ev *evaluator, sc *scope, c *call) Value {
	v := c.args[0].eval(ev, sc)
	low := c.args[1].eval(ev, sc)
	high := c.args[2].eval(ev, sc)
	if low.kind == Undefined || high.kind == Undefined {
		return Value{}
	}
	v, low, high = toString(ev, v), toString(ev, low), toString(ev, high)
	if v.kind != String || low.kind != String || high.kind != String {
		return ErrorValue("version_in_range: an argument has no text")
	}
	return BoolValue(naturalCompare(low.str, v.str) <= 0 && naturalCompare(v.str, high.str) <= 0)
}

// naturalCompare orders as strverscmp(3) does; the size of the result is that
// of HTCondor (src/classad/natural_cmp.cpp).
func naturalCompare(a, b string) int {
	at := func(s string, i int) byte {
		if i < len(s) {
			return s[i]
		}
		return 0
	}
	i := 0 // the first difference
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) && i == len(b) {
		return 0
	}
	begin := i // of the number that leads up to the difference, in both
	for begin > 0 && isDigit(a[begin-1]) {
		begin--
	}
	difference := int(int8(at(a, i))) - int(int8(at(b, i)))
	if begin == i && (!isDigit(at(a, i)) || !isDigit(at(b, i))) {
		return difference
	}
	zeros := func(s string) int { // leading zeros, not counting a final one
		n := 0
		for at(s, begin+n) == '0' {
			n++
		}
		if n > 0 && !isDigit(at(s, begin+n)) {
			n--
		}
		return n
	}
	za, zb := zeros(a), zeros(b)
	if za != zb {
		return zb - za
	}
	if za > 0 {
		return difference
	}
	digits := func(s string) int {
		n := 0
		for isDigit(at(s, begin+n)) {
			n++
		}
		return n
	}
	if da, db := digits(a), digits(b); da != db {
		return da - db
	}
	return difference
}
