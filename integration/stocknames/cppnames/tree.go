package cppnames

import "slices"

// function is a piece of code with parameters: a function, a macro, or what of a file is in neither.
type function struct {
	file   *file
	name   string // empty outside of functions
	params []string
	tokens []token
	macro  bool
}

// functionsOf cuts a file into its functions. Braces of namespaces, classes and `extern "C"` do not count.
func functionsOf(f *file) []*function {
	outside := &function{file: f, tokens: f.tokens}
	all := []*function{outside}
	for _, m := range f.macros {
		all = append(all, &function{file: f, name: m.name, params: m.params, tokens: m.body, macro: true})
	}
	t := f.tokens
	for i := 0; i < len(t); i++ {
		if !is(t, i, "{") {
			continue
		}
		name, params, ok := headOf(t, i)
		if !ok {
			if isData(t, i) {
				i = closing(t, i)
			}
			continue
		}
		end := closing(t, i)
		all = append(all, &function{file: f, name: name, params: params, tokens: t[i:min(end+1, len(t))]})
		i = end
	}
	// What lies outside is looked at without the bodies of functions.
	var left []token
	for i := 0; i < len(t); i++ {
		if is(t, i, "{") {
			if _, _, ok := headOf(t, i); ok {
				i = closing(t, i)
				left = append(left, token{symbol, ";", false})
				continue
			}
		}
		left = append(left, t[i])
	}
	outside.tokens = left
	return all
}

func is(t []token, i int, s string) bool {
	return i >= 0 && i < len(t) && t[i].kind != text && t[i].text == s
}

// isData says whether the brace begins an initialiser.
func isData(t []token, i int) bool { return is(t, i-1, "=") || is(t, i-1, "]") }

// closing is where the bracket at i is closed, or the end.
func closing(t []token, i int) int {
	open := t[i].text
	end := map[string]string{"{": "}", "(": ")", "[": "]"}[open]
	depth := 0
	for ; i < len(t); i++ {
		switch {
		case is(t, i, open):
			depth++
		case is(t, i, end):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(t)
}

// headOf reads backwards from an opening brace: NAME ( PARAMETERS ) [words or : initialisers] {.
func headOf(t []token, brace int) (name string, params []string, ok bool) {
	last := -1 // the leftmost closing bracket of this statement
	for i := brace - 1; i >= 0 && !is(t, i, ";") && !is(t, i, "}") && !is(t, i, "{") && !is(t, i, "="); i-- {
		if !is(t, i, ")") {
			continue
		}
		open := opening(t, i)
		if open <= 0 {
			break
		}
		if t[open-1].kind == word {
			last = i
		}
		i = open
	}
	if last < 0 {
		return "", nil, false
	}
	open := opening(t, last)
	name = t[open-1].text
	if slices.Contains([]string{"if", "for", "while", "switch", "catch", "return", "__attribute__", "decltype", "sizeof", "alignas"}, name) {
		return "", nil, false
	}
	for _, arg := range arguments(t, open) {
		params = append(params, paramName(arg))
	}
	return name, params, true
}

func opening(t []token, i int) int {
	depth := 0
	for ; i >= 0; i-- {
		switch {
		case is(t, i, ")"):
			depth++
		case is(t, i, "("):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// paramName is the name that a declaration of a string such as `const char *name = nullptr` gives; empty for other types.
func paramName(t []token) string {
	if !isType(t) {
		return ""
	}
	for i := range t {
		if is(t, i, "=") || is(t, i, "[") {
			t = t[:i]
			break
		}
	}
	if len(t) < 2 || t[len(t)-1].kind != word {
		return ""
	}
	return t[len(t)-1].text
}

// arguments are what is between the bracket at open and its end, by commas.
func arguments(t []token, open int) [][]token {
	end := min(closing(t, open), len(t))
	var all [][]token
	from, depth := open+1, 0
	for i := open + 1; i < end; i++ {
		switch {
		case is(t, i, "(") || is(t, i, "{") || is(t, i, "["):
			depth++
		case is(t, i, ")") || is(t, i, "}") || is(t, i, "]"):
			depth--
		case depth == 0 && is(t, i, ","):
			all = append(all, t[from:i])
			from = i + 1
		}
	}
	if from < end {
		all = append(all, t[from:end])
	}
	return all
}
