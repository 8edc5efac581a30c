package cppnames

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Name is a knob or an attribute that code reads.
type Name struct {
	Kind Kind
	// Text has `*` where the running program fills something in, and `<SUBSYS>` where that is the daemon's name.
	Text string
	// Files are those that read it, in order, relative to the source's directory.
	Files []string
	// Windows says that only Windows compiles that code.
	Windows bool
}

// Kind says what a name is of.
type Kind string

// What is read.
const (
	Knob      Kind = "knob"
	Attribute Kind = "attribute"
	// Unknown are places that read a knob whose name is not found; the text is FILE:FUNCTION.
	Unknown Kind = "unknown"
)

// knobFunctions are those that read a knob: the position of the name among their arguments. -1: the
// second of several arguments, or the only one.
var knobFunctions = map[string]int{
	"param": -1, "param_boolean": 0, "param_integer": 0, "param_double": 0, "param_longlong": 0, "param_boolean_crufty": 0,
	"param_true": 0, "param_false": 0, "param_defined": 0, "param_defined_by_config": 0, "param_unexpanded": 0, "param_raw_default": 0,
	"param_with_full_path": 0, "param_eval_string": 1, "param_and_insert_unique_items": 0, "param_and_insert_attrs": 0,
	"param_with_context": 0, "param_ctx": 0, "param_without_default": 0, "param_default_string": 0, "param_exact_default_string": 0,
	"param_names_matching": 0, "param_with_default": 0, "param_with_default_abort": 0, "param_find_item": 0,
}

// attributeFunctions are those that look an attribute up: the position of the name.
var attributeFunctions = map[string]int{
	"LookupString": 0, "LookupInteger": 0, "LookupBool": 0, "LookupFloat": 0, "LookupExpr": 0, "Lookup": 0, "LookupIgnoreChain": 0,
	"EvaluateAttr": 0, "EvaluateAttrString": 0, "EvaluateAttrInt": 0, "EvaluateAttrBool": 0, "EvaluateAttrBoolEquiv": 0, "EvaluateAttrNumber": 0,
	"EvaluateAttrReal": 0, "EvaluateExpr": 0, "EvalString": 0, "EvalInteger": 0, "EvalBool": 0, "EvalFloat": 0, "EvalAttr": 0, "AttrExists": 0,
	"EvaluateBool": 0, "EvaluateInteger": 0, "EvaluateString": 0, "Contains": 0,
}

// setFunctions are those whose first argument is the name of an attribute that is set.
var setFunctions = []string{
	"Assign", "AssignExpr", "InsertAttr", "Insert", "Delete", "SetAttribute", "set", "config_fill_ad", "addToAd", "Publish", "delete_attr",
	"removeAttribute", "updateAttribute", "setAttr", "DeleteAttribute", "SetAttributeString", "SetAttributeInt",
}

var (
	plausible   = regexp.MustCompile(`^[A-Za-z0-9_.*<>\-]+$`)
	hasLetters  = regexp.MustCompile(`[A-Za-z]{2}`)
	verbs       = regexp.MustCompile(`%[a-z]`)
	holes       = regexp.MustCompile(`\*{2,}`)
	referred    = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_.]*)`)
	attributeOf = regexp.MustCompile(`^ATTR_[A-Z0-9_]+$`)
)

// Source is a file by its name and contents.
type Source struct{ Name, Text string }

// Find returns what the files read, in order. Attributes are only looked for in files that `attributes` picks.
func Find(sources []Source, attributes func(name string) bool) []Name {
	files := make([]*file, 0, len(sources))
	for _, s := range sources {
		files = append(files, lex(s.Name, s.Text))
	}
	s := &scan{p: newProgram(files), found: map[key]*Name{}, functions: maps.Clone(knobFunctions), attributes: attributes}
	s.knobs()
	for _, f := range s.p.functions {
		s.references(f)
		if attributes(f.file.name) {
			s.attributesOf(f)
		}
	}
	var all []Name
	for _, n := range s.found {
		slices.Sort(n.Files)
		all = append(all, *n)
	}
	slices.SortFunc(all, func(a, b Name) int {
		if c := strings.Compare(string(a.Kind), string(b.Kind)); c != 0 {
			return c
		}
		return strings.Compare(a.Text, b.Text)
	})
	return all
}

type key struct {
	kind Kind
	text string
}

type scan struct {
	p          *program
	found      map[key]*Name
	functions  map[string]int // those of knobs, and others that pass a name on to them
	attributes func(string) bool
}

func (s *scan) add(kind Kind, name, file string, windows bool) {
	k := key{kind, name}
	n := s.found[k]
	if n == nil {
		n = &Name{Kind: kind, Text: name, Windows: true}
		s.found[k] = n
	}
	n.Windows = n.Windows && windows
	if !slices.Contains(n.Files, file) {
		n.Files = append(n.Files, file)
	}
}

// knobs finds what the functions of knobs are called with. A function that passes a parameter of its own
// on is one of them from then on, so all is looked at again until no more are found.
func (s *scan) knobs() {
	todo := maps.Clone(s.functions)
	for len(todo) > 0 {
		more := map[string]int{}
		for _, f := range s.p.functions {
			s.knobsOf(f, todo, more)
		}
		for name, position := range more {
			s.functions[name] = position
		}
		todo = more
	}
}

func (s *scan) knobsOf(f *function, todo, more map[string]int) {
	for i := range f.tokens {
		position, ok := todo[f.tokens[i].text]
		if !ok || f.tokens[i].kind != word || !is(f.tokens, i+1, "(") {
			continue
		}
		if _, within := knobFunctions[f.name]; within { // the family calls itself
			continue
		}
		_, family := knobFunctions[f.tokens[i].text]
		args := arguments(f.tokens, i+1)
		stringified := position >= 100
		if stringified {
			position -= 100
		}
		if position < 0 {
			position = min(len(args)-1, 1)
		}
		if position < 0 || position >= len(args) || isDeclaration(f, i, args[position]) {
			continue
		}
		if stringified {
			s.add(Knob, joined(args[position]), f.file.name, f.tokens[i].windows)
			continue
		}
		r := &reader{p: s.p, f: f}
		values := r.values(args[position], i)
		s.pass(f, r.passed, more)
		for _, v := range values {
			v = holes.ReplaceAllString(verbs.ReplaceAllString(v, hole), hole)
			switch {
			case v == hole && len(r.passed) > 0:
			case hasLetters.MatchString(v) && plausible.MatchString(v):
				s.add(Knob, v, f.file.name, f.tokens[i].windows)
			case family:
				s.add(Unknown, f.file.name+":"+f.name, f.file.name, f.tokens[i].windows)
			}
		}
	}
}

// pass notes that a function passes parameters on as names of knobs.
func (s *scan) pass(f *function, passed []string, more map[string]int) {
	for _, p := range passed {
		name, literal := strings.CutPrefix(p, "#")
		position := slices.Index(f.params, name)
		if _, known := s.functions[f.name]; known || position < 0 || f.name == "" {
			continue
		}
		if literal {
			position += 100
		}
		more[f.name] = position
	}
}

func joined(t []token) string {
	var b strings.Builder
	for _, x := range t {
		b.WriteString(x.text)
	}
	return b.String()
}

// isDeclaration says whether what looks like a call declares the function.
func isDeclaration(f *function, at int, arg []token) bool {
	if len(arg) > 1 && (is(arg, 0, "const") || is(arg, 0, "char") || is(arg, 0, "std") && is(arg, 2, "string") && !is(arg, 3, "(")) {
		return true
	}
	return len(arg) == 0
}

// references finds $(NAME) in literals that are expanded as configuration is.
func (s *scan) references(f *function) {
	for i := range f.tokens {
		if !is(f.tokens, i, "expand_param") || !is(f.tokens, i+1, "(") {
			continue
		}
		for _, arg := range arguments(f.tokens, i+1) {
			for _, t := range arg {
				if t.kind == text {
					for _, m := range referred.FindAllStringSubmatch(t.text, -1) {
						s.add(Knob, m[1], f.file.name, t.windows)
					}
				}
			}
		}
	}
}

// attributesOf finds attributes by their constants, unless they are set, and by literals in calls that look one up.
func (s *scan) attributesOf(f *function) {
	t := f.tokens
	for i := range t {
		if t[i].kind == word && attributeOf.MatchString(t[i].text) && !s.isSet(t, i) {
			values := s.p.constants[t[i].text]
			if len(values) == 0 {
				values = []string{t[i].text}
			}
			for _, v := range values {
				s.add(Attribute, v, f.file.name, t[i].windows)
			}
		}
		position, ok := attributeFunctions[t[i].text]
		if !ok || t[i].kind != word || !is(t, i+1, "(") {
			continue
		}
		if args := arguments(t, i+1); position < len(args) {
			r := &reader{p: s.p, f: f}
			for _, v := range r.values(args[position], i) {
				if hasLetters.MatchString(v) && plausible.MatchString(v) {
					s.add(Attribute, v, f.file.name, t[i].windows)
				}
			}
		}
	}
}

// isSet says whether the constant at i is the name in a call that sets it.
func (s *scan) isSet(t []token, i int) bool {
	return is(t, i-1, "(") && i > 1 && slices.Contains(setFunctions, t[i-2].text)
}
