package classads

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// generator makes random expressions of the whole grammar.
type generator struct{ r *rand.Rand }

// adPairs are ads to evaluate in, MY and TARGET.
var adPairs = [][2]string{
	{
		`[ a = 1; b = 2.5; s = "str"; t = true; u = undefined; e = error; l = { 1,2,3 }; n = [ x = a + 1; y = "in"; z = [ x = 5; w = y ] ]; c = d + 1; d = c; self1 = self1; f = a * 10 + b; AttrCase = "Mixed"; at = absTime("2024-02-29T12:34:56+01:00"); rt = relTime("1+02:03:04"); ads = { [ x = 1; k = "one" ],[ x = 2 ],n }; req = x > 1 && k == "one"; sl = "a, b,c"; strs = { "b","a" } ]`,
		``,
	},
	{
		`[ a = 7; s = "Left"; Requirements = TARGET.Memory >= RequestMemory && Arch == "X86_64"; RequestMemory = 1024; l = { TARGET.Memory,a,b }; n = [ x = a; y = b; z = Memory ]; Rank = Memory / 2.0; ads = { [ x = 1; m = Memory ],[ x = Disk ] }; req = x > 0; c = TARGET.c; rt = relTime(90); f = strcat(s,OpSys); t = false; u = undefined; e = error; strs = { s,OpSys } ]`,
		`[ Memory = 2048; Disk = 100000; Arch = "x86_64"; OpSys = "LINUX"; b = "right"; a = 3.0; Start = MY.Memory > TARGET.RequestMemory; c = TARGET.c; n = [ x = Memory; q = RequestMemory ]; l = { 1,Memory }; at = absTime(0,3600); d = RequestMemory; sl = "x y,z" ]`,
	},
	{``, ``},
}

func (g generator) pick(words ...string) string { return words[g.r.IntN(len(words))] }

func (g generator) expr(depth int) string {
	if depth <= 0 {
		return g.atom()
	}
	sub := func() string { return g.expr(depth - 1) }
	switch g.r.IntN(20) {
	case 0, 1, 2, 3, 4:
		return sub() + " " + g.pick("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", ">>>", "&&", "||", "<", "<=", ">", ">=", "==", "!=", "=?=", "=!=", "is", "ISNT") + " " + sub()
	case 5:
		return g.pick("!", "-", "+", "~", "- ", "!!") + sub()
	case 6:
		return "(" + sub() + ")"
	case 7:
		return sub() + " ? " + sub() + " : " + sub()
	case 8:
		return sub() + " ?: " + g.atom()
	case 9:
		return g.pick("l", "strs", "ads", "n", "{1,a,\"x\"}", "MY.l") + "[" + sub() + "]"
	case 10:
		return g.list(depth)
	case 11:
		return "[ " + g.pick("x", "a", "Y1", "'q q'") + " = " + sub() + "; b = " + sub() + " ]" + g.pick("", "", ".x", ".a", ".b", "[\"b\"]")
	case 12:
		return g.pick("n", "ads", "l", "s", "MY", "TARGET", "n.z", "PARENT", "SELF") + "." + g.pick("x", "y", "w", "k", "a", "missing", "z")
	default:
		return g.call(depth)
	}
}

func (g generator) list(depth int) string {
	n := g.r.IntN(4)
	items := make([]string, n)
	for i := range items {
		items[i] = g.expr(depth - 1 - g.r.IntN(2))
	}
	return "{ " + strings.Join(items, g.pick(", ", ",")) + " }"
}

func (g generator) atom() string {
	switch g.r.IntN(9) {
	case 0, 1:
		return g.int()
	case 2:
		return g.real()
	case 3:
		return g.str()
	case 4:
		return g.pick("true", "false", "undefined", "error", "TRUE", "Undefined")
	case 5:
		return g.time()
	default:
		return g.pick("a", "b", "s", "t", "u", "e", "l", "n", "c", "d", "f", "at", "rt", "ads", "req", "strs", "sl", "AttrCase", "attrcase", "missing",
			"MY.a", "TARGET.Memory", "Memory", "my.s", "target.b", "self1", "Rank", "Requirements", ".a", "MY.missing", "TARGET.a", "'a'", "Start", "TARGET.Start", "MY", "TARGET")
	}
}

func (g generator) int() string {
	return g.pick("0", "1", "2", "3", "-1", "7", "10", "63", "64", "-5", "100", "86400", "2147483648", "4294967297", "9223372036854775807", "-9223372036854775808", "99999999999999999999", "1234567")
}

func (g generator) real() string {
	return g.pick("0.0", "-0.0", "1.5", "2.0", "-2.5", "0.1", "1e10", "1E-7", "3.14159265358979", "1e300", "1.7976931348623157e308", "123456789.123", ".5", "-.25", "5e-324", "2.5", "1e16", "0.5")
}

func (g generator) str() string {
	return g.pick(`""`, `"a"`, `"A"`, `"abc"`, `"ABC"`, `"a b"`, `"1"`, `"1.5e3xyz"`, `" 42"`, `"true"`, `"x\ty\n"`, `"\\back\"slash"`, `"a,b, c"`, `"user@domain"`, `"INF"`, `"-inf"`, `"NaN"`, `"0x1F"`,
		`"8.9.10"`, `"8.10.1"`, `"10"`, `"09"`, `"a + 1"`, `"{ 1,a }"`, `"\303\244\001"`, `'a'`, `"str" "cat"`, `"1 2 3"`, `"-7,5.5"`, `"FOO=bar BAZ='a b'"`, `"A=1;B=2"`, `"it''s"`, `"relTime"`, `"is"`)
}

func (g generator) time() string {
	return g.pick(`absTime("2024-03-10T01:02:03Z")`, `absTime("1999-12-31T23:59:59-08:00")`, `absTime(1700000000)`, `absTime(0, -3600)`, `relTime(86461)`, `relTime("-1+00:00:05")`, `relTime("5m")`, `relTime(1.75)`, `relTime("2:30.5")`, `absTime("2001")`, `relTime(59.25)`)
}

// signatures are the kinds of the arguments of functions: s string, i integer,
// n number, l list, a list of ads, x any value, t time, p pattern, f pattern
// options, o comparison, d delimiters, m replacement, r reference, v version,
// F time format. A star repeats the one before it, what follows a question
// mark is optional. Functions whose result nobody can foresee are not here.
var signatures = map[string]string{
	"isundefined": "x", "iserror": "x", "isstring": "x", "isinteger": "x", "isreal": "x", "isboolean": "x", "islist": "x", "isclassad": "x", "isabstime": "x", "isreltime": "x",
	"member": "xl", "identicalmember": "xl", "anycompare": "olx", "allcompare": "olx", "size": "x", "sum": "l", "avg": "l", "min": "l", "max": "l",
	"strcat": "x*", "join": "sx*", "toupper": "x", "tolower": "x", "substr": "si?i", "strcmp": "xx", "stricmp": "ss",
	"split": "s?d", "splitusername": "s", "splitslotname": "s",
	"versioncmp": "vv", "versionle": "vv", "versionlt": "vv", "versionge": "vv", "versiongt": "vv", "versioneq": "vv", "version_in_range": "vvv",
	"regexp": "ps?f", "regexpmember": "pl?f", "regexps": "psm?f", "replace": "psm?f", "replaceall": "psm?f",
	"int": "x", "real": "x", "string": "x", "bool": "x", "abstime": "x?n", "reltime": "x",
	"floor": "x", "ceil": "x", "ceiling": "x", "round": "n", "pow": "nn", "quantize": "nx",
	"getyear": "t", "getmonth": "t", "getdayofyear": "t", "getdayofmonth": "t", "getdayofweek": "t", "getdays": "t", "gethours": "t", "getminutes": "t", "getseconds": "t",
	"splittime": "t", "formattime": "t?F", "interval": "n", "timezoneoffset": "",
	"stringlistsize": "s?d", "stringlistsum": "s?d", "stringlistavg": "s?d", "stringlistmin": "s?d", "stringlistmax": "s?d",
	"stringlistmember": "ss?d", "stringlistimember": "ss?d", "stringlistsubsetmatch": "ss?d", "stringlistisubsetmatch": "ss?d", "stringlistsintersect": "ss?d", "stringlist_regexpmember": "ps?df",
	"envv1tov2": "s", "mergeenvironment": "s*", "listtoargs": "l?i", "argstolist": "s?i",
	"userhome": "s?s", "usermap": "ss?ss",
	"ifthenelse": "xxx", "eval": "s", "unparse": "r", "unresolved": "r?p", "debug": "x", "evalineachcontext": "xa", "countmatches": "xa",
	"nosuchfunction": "x",
}

var signatureNames = func() []string {
	var names []string
	for n := range signatures {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}()

func (g generator) call(depth int) string {
	name := g.pick(signatureNames...)
	var args []string
	optional := false
	sig := signatures[name]
	for i := 0; i < len(sig); i++ {
		switch k := sig[i]; k {
		case '?':
			optional = true
		case '*':
			for range g.r.IntN(3) {
				args = append(args, g.arg(sig[i-1], depth))
			}
		default:
			if optional && g.r.IntN(2) == 0 {
				i = len(sig)
				break
			}
			args = append(args, g.arg(k, depth))
		}
	}
	switch g.r.IntN(25) {
	case 0:
		args = append(args, g.expr(0))
	case 1:
		if len(args) > 1 {
			args = args[1:]
		}
	}
	if b := lookupBuiltin(name); b != nil && g.r.IntN(2) == 0 {
		name = b.name
	}
	return name + "(" + strings.Join(args, g.pick(",", ", ")) + ")"
}

func (g generator) arg(kind byte, depth int) string {
	if g.r.IntN(8) == 0 {
		return g.expr(depth - 1)
	}
	switch kind {
	case 's', 'v':
		if g.r.IntN(3) == 0 {
			return g.pick("s", "sl", "AttrCase", "OpSys", "MY.s")
		}
		return g.str()
	case 'i':
		return g.int()
	case 'n':
		if g.r.IntN(2) == 0 {
			return g.int()
		}
		return g.real()
	case 'l':
		if g.r.IntN(2) == 0 {
			return g.pick("l", "strs", `{ "a","b","abc" }`, "{ 1,2.5,true }", `{ 3,undefined,1 }`, "{}", `split("a b,c")`)
		}
		return g.list(depth)
	case 'a':
		return g.pick("ads", "{ n }", "{ [ x = 3 ],n,missing }", "missing", "{}", "MY.ads", "l")
	case 't':
		if g.r.IntN(4) == 0 {
			return g.pick("at", "rt", "0", "1700000000", "1.5", "splitTime(at)", "-86401")
		}
		return g.time()
	case 'p':
		return g.pick(`"a"`, `"^a(b)c$"`, `"[a-c]+"`, `"(.)(.*)"`, `"(x)|(a)"`, `"b*"`, `"\\d+"`, `"("`, `"A"`, `"\\s"`, `"(?i)ABC"`, `"^.*$"`, `"(a)?b"`, `"[[:alpha:]]+"`, `"@"`, `","`, `"(\\w+)@(\\w+)"`)
	case 'f':
		return g.pick(`""`, `"i"`, `"g"`, `"f"`, `"fg"`, `"imsx"`, `"I"`)
	case 'o':
		return g.pick(`"<"`, `"<="`, `"=="`, `"!="`, `">"`, `">="`, `"is"`, `"isnt"`, `"=?="`, `"IS"`)
	case 'd':
		return g.pick(`","`, `" "`, `", "`, `""`, `";"`, `"a"`)
	case 'm':
		return g.pick(`"X"`, `"\\1"`, `"<\\0>"`, `"\\2\\1"`, `""`, `"\\"`, `"\\\\1"`, `"a\\9"`)
	case 'r':
		return g.pick("a", "f", "req", "Requirements", "MY.a", "l", "n", "ads", "missing", "Rank", "c", "TARGET.Start", "Start")
	case 'F':
		return g.pick(`"%c"`, `"%Y-%m-%d %H:%M:%S"`, `"%a %A %b %B %d %e %j %U %V %W %G %g %u %w %y %C"`, `"%D %F %R %r %T %x %X %p %P %I %k %l %n %t %%"`, `"%z"`, `"%q %5Y %-d %_d %^a %#p %E %Oy"`, `"%s"`, `""`, `"plain"`)
	}
	return g.expr(depth - 1)
}
