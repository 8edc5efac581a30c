package cppnames

import (
	"regexp"
	"slices"
	"strconv"
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
	marks       = regexp.MustCompile("\x01(#?)(-?\\d+)\x02")
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
	s := &scan{p: newProgram(files), found: map[key]*Name{}, templates: map[string][]template{}, attributes: attributes}
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
	templates  map[string][]template // of functions that make names of their parameters
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

// template is how a function makes the name of a knob of one of its arguments.
type template struct {
	// position of the argument; -1: the second of several, or the only one.
	position    int
	stringified bool   // the argument's words are the name, not its value
	name        string // with mark(position, stringified) where the argument comes
}

// mostTemplates bounds the ways in which functions of one name make names.
const mostTemplates = 20

// knobs finds what the functions of knobs are called with. A function that makes a name of a parameter of its own
// is one of them from then on, so all is looked at again until no more are found.
func (s *scan) knobs() {
	todo := map[string][]template{}
	for name, position := range knobFunctions {
		todo[name] = []template{{position: position, name: mark(position, false)}}
	}
	for range deepest {
		more := map[string][]template{}
		for _, f := range s.p.functions {
			s.knobsOf(f, todo, more)
		}
		todo = more
	}
}

func (s *scan) knobsOf(f *function, todo, more map[string][]template) {
	if _, within := knobFunctions[f.name]; within { // the family calls itself
		return
	}
	for i := range f.tokens {
		if f.tokens[i].kind != word || !is(f.tokens, i+1, "(") {
			continue
		}
		for _, t := range todo[f.tokens[i].text] {
			s.call(f, i, t, more)
		}
	}
}

// call looks at the call at token i.
func (s *scan) call(f *function, i int, t template, more map[string][]template) {
	args := arguments(f.tokens, i+1)
	position := t.position
	if position < 0 {
		position = min(len(args)-1, 1)
	}
	if position < 0 || position >= len(args) || isDeclaration(args[position]) {
		return
	}
	var values []string
	if t.stringified {
		values = []string{joined(args[position])}
	} else {
		values = (&reader{p: s.p, f: f}).values(args[position], i)
	}
	_, family := knobFunctions[f.tokens[i].text]
	for _, v := range values {
		if v == hole && !family { // the function itself has been listed with it
			continue
		}
		v = strings.ReplaceAll(t.name, mark(t.position, t.stringified), v)
		passedOn := s.pass(f, v, more)
		name := holes.ReplaceAllString(marks.ReplaceAllString(verbs.ReplaceAllString(v, hole), hole), hole)
		switch {
		case hasLetters.MatchString(name) && plausible.MatchString(name):
			s.add(Knob, name, f.file.name, f.tokens[i].windows)
		case family && !passedOn:
			s.add(Unknown, f.file.name+":"+f.name, f.file.name, f.tokens[i].windows)
		}
	}
}

// pass notes that a function makes a name of a parameter, if it is of one only.
func (s *scan) pass(f *function, name string, more map[string][]template) bool {
	found := marks.FindAllStringSubmatch(name, -1)
	if len(found) == 0 || f.name == "" {
		return false
	}
	position, err := strconv.Atoi(found[0][2])
	if err != nil {
		return false
	}
	t := template{position: position, stringified: found[0][1] != "", name: name}
	for _, m := range found[1:] {
		if m[0] != found[0][0] { // the other is a hole
			t.name = strings.ReplaceAll(t.name, m[0], hole)
		}
	}
	if known := s.templates[f.name]; len(known) < mostTemplates && !slices.Contains(known, t) {
		s.templates[f.name] = append(known, t)
		more[f.name] = append(more[f.name], t)
	}
	return true
}

func joined(t []token) string {
	var b strings.Builder
	for _, x := range t {
		b.WriteString(x.text)
	}
	return b.String()
}

// isDeclaration says whether what looks like a call declares the function.
func isDeclaration(arg []token) bool {
	if len(arg) > 1 && (is(arg, 0, "const") || is(arg, 0, "char") || is(arg, 0, "std") && is(arg, 2, "string") && !is(arg, 3, "(")) {
		return true
	}
	return len(arg) == 0 || len(arg) == 1 && is(arg, 0, "void")
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
				v = holes.ReplaceAllString(marks.ReplaceAllString(verbs.ReplaceAllString(v, hole), hole), hole)
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

// Literals are the literal strings of the files, each with the files that have it, in order.
func Literals(sources []Source) map[string][]string {
	all := map[string][]string{}
	for _, s := range sources {
		f := lex(s.Name, s.Text)
		tokens := slices.Clone(f.tokens)
		for _, m := range f.macros {
			tokens = append(tokens, m.body...)
		}
		for _, t := range tokens {
			if t.kind == text && !slices.Contains(all[t.text], s.Name) {
				all[t.text] = append(all[t.text], s.Name)
			}
		}
	}
	return all
}
