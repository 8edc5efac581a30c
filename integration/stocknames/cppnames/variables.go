package cppnames

import (
	"slices"
	"strings"
)

// single is the value of one token: a literal, a constant, a variable or a parameter.
func (r *reader) single(t token, at int) []string {
	if t.kind == text {
		return []string{t.text}
	}
	if all := r.variable(t.text, at); len(all) > 0 {
		return all
	}
	if i := slices.Index(r.f.params, t.text); i >= 0 {
		return []string{mark(i, false)}
	}
	if all := r.p.constants[t.text]; len(all) > 0 {
		return slices.Clone(all)
	}
	return []string{hole}
}

// variable are the values that a variable of the function may have before token at: what is
// assigned to it, formatted into it and added to it.
func (r *reader) variable(name string, at int) []string {
	t := r.f.tokens
	var all, current []string
	for i := 0; i < min(at, len(t)); i++ {
		if t[i].kind != word || t[i].text != name || is(t, i-1, ".") || is(t, i-1, "->") {
			continue
		}
		switch {
		case is(t, i+1, "="):
			current = r.values(upTo(t, i+2), i)
			all = union(all, current)
		case is(t, i+1, "[") && closing(t, i+1) == i+2 && is(t, i+3, "="): // char name[] = "..."
			current = r.values(upTo(t, i+4), i)
			all = union(all, current)
		case is(t, i+1, "+="):
			added := cross(orHole(current), r.values(upTo(t, i+2), i))
			all = union(without(all, current), added)
			current = added
		case is(t, i+1, "(") && i > 0 && (is(t, i-1, "string") || is(t, i-1, "MyString")): // std::string name("...")
			if args := arguments(t, i+1); len(args) > 0 {
				current = r.values(args[0], i)
				all = union(all, current)
			}
		case is(t, i+1, ":") && !is(t, i+2, ":"):
			current = r.ranged(name, at)
			all = union(all, current)
		case is(t, i-1, "(") || is(t, i-2, "(") && is(t, i-1, "&"):
			open := i - 1
			if is(t, i-1, "&") {
				open = i - 2
			}
			if got, cat := r.formatted(open); got != nil {
				if cat {
					all, got = without(all, current), cross(orHole(current), got)
				}
				current = got
				all = union(all, current)
			}
		}
	}
	return all
}

func orHole(values []string) []string {
	if len(values) == 0 {
		return []string{hole}
	}
	return values
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

func upTo(t []token, from int) []token {
	end, depth := from, 0
	for ; end < len(t); end++ {
		if is(t, end, "(") || is(t, end, "{") {
			depth++
		}
		if is(t, end, ")") || is(t, end, "}") {
			if depth--; depth < 0 {
				break
			}
		}
		if depth == 0 && (is(t, end, ";") || is(t, end, ",")) {
			break
		}
	}
	return t[from:end]
}

// formatted is what a call of the family of printf writes into its first argument.
func (r *reader) formatted(open int) (values []string, cat bool) {
	t := r.f.tokens
	if open < 1 {
		return nil, false
	}
	format := 1
	switch t[open-1].text {
	case "formatstr", "sprintf", "strcpy":
	case "formatstr_cat", "strcat":
		cat = true
	case "snprintf", "strncpy":
		format = 2
	default:
		return nil, false
	}
	args := arguments(t, open)
	if t[open-1].text == "strncpy" {
		format = 1
	}
	if len(args) <= format {
		return nil, false
	}
	var all []string
	for _, f := range r.values(args[format], open) {
		all = union(all, r.expand(f, args[format+1:], open))
	}
	return all, cat
}

// expand puts values in the places of a format's verbs.
func (r *reader) expand(format string, args [][]token, at int) []string {
	all := []string{""}
	for format != "" {
		before, after, found := strings.Cut(format, "%")
		all = cross(all, []string{before})
		if !found {
			break
		}
		n := strings.IndexFunc(after, func(c rune) bool { return c >= 'a' && c <= 'z' && c != 'l' && c != 'z' || c == '%' })
		if n < 0 {
			break
		}
		verb := after[n]
		format = after[n+1:]
		value := []string{hole}
		if verb == '%' {
			value = []string{"%"}
		} else if len(args) > 0 {
			if verb == 's' {
				value = r.values(args[0], at)
			}
			args = args[1:]
		}
		all = cross(all, value)
	}
	return all
}

// ranged are the literals of the table that `for (auto &name : table)` goes through.
func (r *reader) ranged(name string, at int) []string {
	t := r.f.tokens
	for i := min(at, len(t)-2); i >= 0; i-- {
		if t[i].kind == word && t[i].text == name && is(t, i+1, ":") && i+2 < len(t) {
			if all := r.p.tables[t[i+2].text]; len(all) > 0 {
				return few(all)
			}
			if is(t, i+2, "{") {
				var all []string
				for j := i + 2; j < min(closing(t, i+2), len(t)); j++ {
					if t[j].kind == text {
						all = append(all, t[j].text)
					}
				}
				return all
			}
		}
	}
	return nil
}
