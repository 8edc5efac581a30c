package cppnames

import (
	"slices"
	"strconv"
)

const (
	// hole stands for a part of a name that the code fills in as it runs.
	hole = "*"
	// subsystem stands for the name of the daemon.
	subsystem = "<SUBSYS>"
	// mostChoices is how many entries of a table are told apart; more are a hole.
	mostChoices = 20
	// mostValues bounds the names that one expression can have.
	mostValues = 200
	// deepest bounds how often one value leads to another.
	deepest = 8
)

// program is all files, with what they define.
type program struct {
	functions []*function
	constants map[string][]string // values of macros and constants
	tables    map[string][]string // literals of arrays and other initialisers
	returns   map[string][]string // literals that functions return
}

// newProgram notes constants, tables and what functions return.
func newProgram(files []*file) *program {
	p := &program{constants: map[string][]string{}, tables: map[string][]string{}, returns: map[string][]string{}}
	for _, f := range files {
		p.functions = append(p.functions, functionsOf(f)...)
		for _, m := range f.macros {
			if m.params == nil && len(m.body) == 1 && m.body[0].kind == text {
				addTo(p.constants, m.name, m.body[0].text)
			}
		}
	}
	for _, f := range p.functions {
		p.note(f)
	}
	return p
}

func addTo(to map[string][]string, name, value string) {
	if !slices.Contains(to[name], value) && len(to[name]) < mostValues {
		to[name] = append(to[name], value)
	}
}

func (p *program) note(f *function) {
	t := f.tokens
	for i := range t {
		switch {
		// NAME = "literal" ; outside of functions, or a constant within.
		case t[i].kind == text && (is(t, i-1, "=") || is(t, i-1, "(")) && (is(t, i+1, ";") || is(t, i+1, ")")):
			at := i - 2
			if is(t, at, "]") {
				at = i - 4
			}
			if at >= 1 && t[at].kind == word && f.name == "" && (is(t, at-1, "*") || is(t, at-1, "const") || is(t, at-1, "char") || is(t, at-1, "string")) {
				addTo(p.constants, t[at].text, t[i].text)
			}
		// NAME = { ... }, NAME[] = { ... }
		case is(t, i, "{") && isData(t, i):
			at := i - 1
			for at >= 0 && !is(t, at, ";") && !is(t, at, "}") && !is(t, at, "{") {
				if t[at].kind == word && (is(t, at+1, "=") || is(t, at+1, "[") || is(t, at+1, "{")) {
					break
				}
				at--
			}
			if at < 0 || t[at].kind != word {
				continue
			}
			for j := i; j < closing(t, i) && j < len(t); j++ {
				if t[j].kind == text {
					addTo(p.tables, t[at].text, t[j].text)
				}
			}
		case is(t, i, "return") && f.name != "" && i+1 < len(t):
			if t[i+1].kind == text && is(t, i+2, ";") {
				addTo(p.returns, f.name, t[i+1].text)
			}
		}
	}
}

// reader works out what an expression of a function can be.
type reader struct {
	p     *program
	f     *function
	depth int
}

// mark stands for the value of a parameter of the function; stringified for the words of a macro's argument.
func mark(position int, stringified bool) string {
	sign := ""
	if stringified {
		sign = "#"
	}
	return "\x01" + sign + strconv.Itoa(position) + "\x02"
}

// values are what the expression before token `at` of the function can be. Parts that are not known are holes.
func (r *reader) values(expr []token, at int) []string {
	if r.depth > deepest || len(expr) == 0 {
		return []string{hole}
	}
	r.depth++
	defer func() { r.depth-- }()
	expr = bare(expr)
	if len(expr) == 0 {
		return []string{hole}
	}
	if q, c := choice(expr); q >= 0 {
		return union(r.values(expr[q+1:c], at), r.values(expr[c+1:], at))
	}
	if parts := split(expr, "+"); len(parts) > 1 {
		all := []string{""}
		for _, part := range parts {
			all = cross(all, r.values(part, at))
		}
		return all
	}
	if len(expr) == 1 {
		return r.single(expr[0], at)
	}
	// A literal beside constants: "a" NAME "b".
	if !slices.ContainsFunc(expr, func(t token) bool { return t.kind == symbol }) {
		all := []string{""}
		for _, part := range expr {
			all = cross(all, r.single(part, at))
		}
		return all
	}
	if is(expr, 0, "#") && len(expr) == 2 && slices.Contains(r.f.params, expr[1].text) { // a macro's argument as a literal
		return []string{mark(slices.Index(r.f.params, expr[1].text), true)}
	}
	if is(expr, 1, "[") { // an element of a table
		if all := r.p.tables[expr[0].text]; len(all) > 0 {
			return few(all)
		}
	}
	if slices.ContainsFunc(expr, func(t token) bool {
		return t.text == "get_mySubSystem" || t.text == "getSubsystem" || t.text == "get_mySubSystemName"
	}) {
		return []string{subsystem}
	}
	// The call of a function that returns literals.
	for i := range expr {
		if expr[i].kind == word && is(expr, i+1, "(") && closing(expr, i+1) == len(expr)-1 {
			if all := r.p.returns[expr[i].text]; len(all) > 0 {
				return few(all)
			}
			if expr[i].text == "string" || expr[i].text == "std" || expr[i].text == "format" {
				return r.values(arguments(expr, i+1)[0], at)
			}
		}
	}
	// x.name, where x goes through a table.
	if expr[0].kind == word && (is(expr, 1, ".") || is(expr, 1, "->")) {
		if all := r.ranged(expr[0].text, at); len(all) > 0 {
			return all
		}
	}
	return []string{hole}
}

// few are the values, or a hole if they are many.
func few(values []string) []string {
	if len(values) > mostChoices {
		return []string{hole}
	}
	return slices.Clone(values)
}

// bare is the expression without what does not change it: brackets, casts, c_str().
func bare(t []token) []token {
	for {
		n := len(t)
		switch {
		case n > 2 && is(t, 0, "(") && closing(t, 0) == n-1:
			t = t[1 : n-1]
		case n >= 5 && is(t, n-1, ")") && is(t, n-2, "(") && (is(t, n-3, "c_str") || is(t, n-3, "data") || is(t, n-3, "ptr") || is(t, n-3, "Value")):
			t = t[:n-4]
		case n > 4 && is(t, 0, "std") && is(t, 1, "::") && is(t, 2, "string") && is(t, 3, "(") && closing(t, 3) == n-1:
			t = t[4 : n-1]
		case n > 3 && is(t, 0, "(") && closing(t, 0) < n-1 && isType(t[1:closing(t, 0)]):
			t = t[closing(t, 0)+1:]
		default:
			return t
		}
	}
}

func isType(t []token) bool {
	return len(t) > 0 && slices.ContainsFunc(t, func(x token) bool { return x.text == "char" || x.text == "string" })
}

// choice is where `a ? b : c` has its marks, or -1.
func choice(t []token) (q, c int) {
	q, depth := -1, 0
	for i := range t {
		switch {
		case is(t, i, "(") || is(t, i, "["):
			depth++
		case is(t, i, ")") || is(t, i, "]"):
			depth--
		case depth == 0 && q < 0 && is(t, i, "?"):
			q = i
		case depth == 0 && q >= 0 && is(t, i, ":"):
			return q, i
		}
	}
	return -1, -1
}

func split(t []token, by string) [][]token {
	var all [][]token
	from, depth := 0, 0
	for i := range t {
		switch {
		case is(t, i, "(") || is(t, i, "["):
			depth++
		case is(t, i, ")") || is(t, i, "]"):
			depth--
		case depth == 0 && is(t, i, by):
			all = append(all, t[from:i])
			from = i + 1
		}
	}
	return append(all, t[from:])
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// cross are all the ways to put one of b behind one of a.
func cross(a, b []string) []string {
	var all []string
	for _, x := range a {
		for _, y := range b {
			if len(all) < mostValues {
				all = append(all, x+y)
			}
		}
	}
	return all
}
