package classads

import "slices"

// builtin is a function of the language.
type builtin struct {
	name    string // as it is documented; calls ignore case
	family  string
	usage   string
	summary string
	// min and max are the numbers of arguments allowed, max < 0 for any
	// number. Any other number yields error without evaluating an argument.
	min, max int
	// variant tells functions apart that share eval.
	variant int
	eval    func(ev *evaluator, sc *scope, c *call) Value
}

// builtins are the functions by their name in lower case.
var builtins = func() map[string]*builtin {
	m := make(map[string]*builtin)
	for _, family := range [][]builtin{
		typeFunctions, listFunctions, stringFunctions, versionFunctions, patternFunctions,
		conversionFunctions, mathFunctions, timeFunctions, stringListFunctions,
		environmentFunctions, userFunctions,
	} {
		for i := range family {
			m[string(appendLower(nil, family[i].name))] = &family[i]
		}
	}
	return m
}()

// evaluationFunctions can parse text, which looks functions up. A package variable
// cannot refer to itself in that way, so there is an init function.
func init() {
	for i := range evaluationFunctions {
		builtins[string(appendLower(nil, evaluationFunctions[i].name))] = &evaluationFunctions[i]
	}
}

// longestName is at least the length of the longest name of a function.
const longestName = 32

func lookupBuiltin(name string) *builtin {
	if len(name) > longestName {
		return nil
	}
	var buf [longestName]byte
	return builtins[string(appendLower(buf[:0], name))]
}

func appendLower(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		dst = append(dst, lower(s[i]))
	}
	return dst
}

// Function describes a built-in function.
type Function struct {
	Name    string
	Family  string
	Usage   string // its arguments, e.g. "substr(string, offset [, length])"
	Summary string
}

// Functions lists the built-in functions by family and name.
func Functions() []Function {
	var out []Function
	for _, b := range builtins {
		out = append(out, Function{Name: b.name, Family: b.family, Usage: b.usage, Summary: b.summary})
	}
	slices.SortFunc(out, func(a, b Function) int {
		if c := compareFold(a.Family, b.Family); c != 0 {
			return c
		}
		return compareFold(a.Name, b.Name)
	})
	return out
}
