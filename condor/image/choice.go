package image

import (
	"fmt"
	"strings"

	"podstarter/classads"
)

// Policy says which jobs an execution point accepts.
type Policy string

// The policies, in the words of GlideinWMS (GLIDEIN_SINGULARITY_REQUIRE).
const (
	// PolicyNever: jobs that name an image do not run here.
	PolicyNever Policy = "never"
	// PolicyOptional: all jobs run here; those without an image get the default.
	PolicyOptional Policy = "optional"
	// PolicyRequired: jobs that name no image do not run here.
	PolicyRequired Policy = "required"
)

func policyOf(word string) Policy {
	switch p := Policy(strings.ToLower(strings.TrimSpace(word))); p {
	case PolicyNever, PolicyOptional, PolicyRequired:
		return p
	}
	return ""
}

func parsePolicy(text string) (choice, error) {
	c, err := parseChoice(text, func(word string) bool { return policyOf(word) != "" })
	if err == nil && c.expr != nil && strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz") == "" {
		// As an expression it would be an attribute; more likely it is a typing
		// error.
		err = fmt.Errorf("%s is not never, optional or required; put an attribute's name in parentheses", excerpt(text))
	}
	return c, err
}

// Policy returns the policy for all jobs; "" if it depends on the job.
func (s *Site) Policy() Policy {
	if s.policy.expr != nil {
		return ""
	}
	if s.policy.word == "" {
		return PolicyOptional
	}
	return policyOf(s.policy.word)
}

// policyFor returns the policy for one job.
func (s *Site) policyFor(ad, machine *classads.Ad) (Policy, error) {
	if p := s.Policy(); p != "" {
		return p, nil
	}
	word, err := s.policy.eval(ad, machine)
	if err != nil {
		return "", &Mistake{Knob: KnobPolicy, Err: err}
	}
	if p := policyOf(word); p != "" {
		return p, nil
	}
	if word == "" {
		return "", mistake(KnobPolicy, "the expression is undefined for this job; write what holds where an attribute is missing, as in (TARGET.Attribute ?: 0) > 0")
	}
	return "", mistake(KnobPolicy, "the expression gives %s for this job, which is not never, optional or required", excerpt(word))
}

// choice is a knob with a plain word, or with an expression over both ads that
// yields one. The zero value yields none.
type choice struct {
	word string
	expr *classads.Expr
}

// parseChoice treats a word as a word, even if it is also a valid expression, and
// any other text as an expression. Whether a text is a word does not depend on
// any ad, so no job can turn one into the other.
func parseChoice(text string, isWord func(string) bool) (choice, error) {
	if text == "" {
		return choice{}, nil
	}
	if isWord(text) {
		return choice{word: text}, nil
	}
	expr, err := classads.ParseOldExpr(text)
	if err != nil {
		return choice{}, fmt.Errorf("%s is neither a plain value nor a ClassAd expression: %w", excerpt(text), err)
	}
	return choice{expr: expr}, nil
}

// eval returns the word; "" if there is none or the expression is undefined.
func (c choice) eval(ad, machine *classads.Ad) (string, error) {
	if c.expr == nil {
		return c.word, nil
	}
	v := c.expr.Eval(classads.Env{My: machine, Target: ad})
	if v.Kind() == classads.Undefined {
		return "", nil
	}
	word, ok := v.Str()
	if !ok {
		return "", fmt.Errorf("the expression gives %s for this job, which is not a string", excerpt(v.String()))
	}
	return word, nil
}
