package match

import (
	"fmt"
	"strings"
	"time"

	"podstarter/classads"
)

// Explanation says why a job and a slot match or do not.
type Explanation struct {
	Slot string // its ID
	Result
	// Job and Theirs are the clauses of the Requirements of the job, and of the slot,
	// that do not hold for the other.
	Job, Theirs []Clause
}

// Clause is a part of Requirements that must hold, and does not.
type Clause struct {
	Text string
	// Value is what it evaluates to: false, undefined or an error.
	Value string
	// Uses has the attributes to which it refers, as NAME = VALUE.
	Uses []string
}

// Bounds of what is said of one side. Expressions come from users.
const (
	maxClauses = 20
	maxUses    = 8
	maxParts   = 500 // that are looked at
	maxDepth   = 20
	maxText    = 300
)

// Explain finds the clauses that keep a job and a slot from matching.
func Explain(job *classads.Ad, s Slot, now func() time.Time) Explanation {
	m := New(now, nil)
	e := Explanation{Slot: s.ID, Result: m.evaluate(job, s)}
	if e.Matches {
		return e
	}
	env := classads.Env{Now: m.now, Limits: bounds}
	e.Job = clauses(job, s.Ad, env)
	e.Theirs = clauses(s.Ad, job, env)
	return e
}

// clauses returns those of my Requirements that do not hold for target.
func clauses(my, target *classads.Ad, env classads.Env) []Clause {
	env.My, env.Target = my, target
	requirements, ok := my.Lookup(classads.AttrRequirements)
	if !ok {
		return []Clause{{Text: classads.AttrRequirements, Value: "undefined"}}
	}
	s := splitter{my: my, env: env}
	s.split(requirements, 0)
	if v := requirements.Eval(env); len(s.found) == 0 && !holds(v) {
		// Together the parts need more than one evaluation may.
		s.found = append(s.found, Clause{Text: short(requirements.OldString()), Value: word(v)})
	}
	return s.found
}

// splitter takes an expression apart at &&.
type splitter struct {
	my    *classads.Ad
	env   classads.Env
	parts int
	found []Clause
}

// split looks for the parts of an expression that do not hold. An attribute of the
// same ad, such as START, is taken apart in its place.
func (s *splitter) split(e *classads.Expr, depth int) {
	s.parts++
	v := e.Eval(s.env)
	if holds(v) || len(s.found) >= maxClauses {
		return
	}
	if depth < maxDepth && s.parts < maxParts {
		if operator, operands, ok := e.Operation(); ok && (operator == "&&" || operator == "()") {
			for _, o := range operands {
				s.split(o, depth+1)
			}
			return
		}
		if r, ok := e.Reference(); ok && (r.From == nil || strings.EqualFold(r.Scope(), "MY")) {
			if inner, ok := s.my.Lookup(r.Name); ok {
				if _, fixed := inner.Literal(); !fixed {
					s.split(inner, depth+1)
					return
				}
			}
		}
	}
	s.found = append(s.found, Clause{Text: short(e.OldString()), Value: word(v), Uses: s.uses(e)})
}

// holds reports whether a value counts as true: numbers other than zero do.
func holds(v classads.Value) bool {
	if b, ok := v.Bool(); ok {
		return b
	}
	n, ok := v.Number()
	return ok && n != 0
}

// word writes a value. An error says what it is about.
func word(v classads.Value) string {
	if v.Kind() == classads.Error && v.Reason() != "" {
		return "error (" + short(v.Reason()) + ")"
	}
	return short(v.String())
}

// uses returns the attributes to which an expression refers, with their values.
func (s *splitter) uses(e *classads.Expr) []string {
	var all []string
	seen := map[string]bool{}
	for ref := range e.References() {
		text := ref.String()
		key := strings.ToLower(text)
		if seen[key] || strings.EqualFold(text, "MY") || strings.EqualFold(text, "TARGET") || len(all) >= maxUses {
			continue
		}
		seen[key] = true
		one, err := classads.ParseExpr(text)
		if err != nil {
			continue
		}
		all = append(all, fmt.Sprintf("%s = %s", short(text), word(one.Eval(s.env))))
	}
	return all
}

// short cuts a text.
func short(text string) string {
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + " ..."
	}
	return text
}
