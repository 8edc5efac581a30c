// Package config reads HTCondor's configuration for the STARTER subsystem by
// asking condor_config_val once, and hands out typed values.
//
// The getters accept what HTCondor's own accept (condor_utils/condor_config.cpp:
// param_integer, string_is_boolean_param, ...): a literal, or a ClassAd
// expression. A knob that is set to nothing counts as not set. An error names
// the knob, its value, where it was set and what is accepted.
package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"podstarter/classads"
)

// Config holds all knobs. It never changes, so any number of goroutines may use
// it at once.
type Config struct {
	local string // local name, "" if none
	knobs table
	site  *classads.Site
}

// FromMap makes a configuration of names and values, for tests and for programs
// that run without HTCondor.
func FromMap(knobs map[string]string) *Config {
	all := make(map[string]entry, len(knobs))
	for name, value := range knobs {
		all[strings.ToUpper(name)] = entry{value: value}
	}
	return &Config{knobs: newTable(all)}
}

// WithLocalName returns the same knobs, read with a local name, for tests.
func (c *Config) WithLocalName(name string) *Config {
	changed := *c
	changed.local = name
	return &changed
}

// LocalName is the local name with which the knobs are read, "" if there is none.
func (c *Config) LocalName() string { return c.local }

// find returns the knob that counts. For a knob with prefixed forms the tool
// already lists NAME with the right value. A knob without a default that is set
// only in a prefixed form is listed only in that form.
func (c *Config) find(name string) entry {
	name = strings.ToUpper(name)
	if e, ok := c.knobs.find(name); ok {
		return e
	}
	if c.local != "" {
		if e, ok := c.knobs.find(strings.ToUpper(c.local) + "." + name); ok {
			return e
		}
	}
	e, _ := c.knobs.find(subsystem + "." + name)
	return e
}

// Lookup returns the value of a knob, with macros expanded; false if the knob is
// not set or is set to nothing. Names are compared without regard to case.
func (c *Config) Lookup(name string) (string, bool) {
	e := c.find(name)
	return e.value, e.value != ""
}

// String returns the value of a knob, def if it is not set.
func (c *Config) String(name, def string) string {
	if v, ok := c.Lookup(name); ok {
		return v
	}
	return def
}

// Where returns where a knob was set: a file and line, "<Environment>",
// "<Default>", or "" if that is not known.
func (c *Config) Where(name string) string { return c.find(name).at }

// Names returns the names of all knobs in capital letters, sorted, those set for
// a subsystem or a local name with that before a dot.
func (c *Config) Names() []string {
	names := make([]string, len(c.knobs))
	for i, k := range c.knobs {
		names[i] = k.name
	}
	return names
}

// Sources returns the files that set at least one knob, sorted.
func (c *Config) Sources() []string {
	var files []string
	for _, e := range c.knobs {
		file, _, ok := strings.Cut(e.at, ", line ")
		if ok && strings.HasPrefix(file, "/") {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// Error is the error for a knob whose value is wrong.
type Error struct {
	Name  string // the knob
	Value string // what it is set to
	Where string // where it is set, "" if unknown
	Want  string // what is accepted
	Err   error  // what was wrong, may be nil
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "knob %s = %q", e.Name, cut(e.Value))
	if e.Where != "" {
		fmt.Fprintf(&b, " (set at %s)", e.Where)
	}
	fmt.Fprintf(&b, " is not %s", e.Want)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

func (c *Config) wrong(name, want string, err error) error {
	e := c.find(name)
	return &Error{Name: name, Value: e.value, Where: e.at, Want: want, Err: err}
}

const wantBool = "True or False or an expression that is one of them"

// Bool returns a boolean knob, def if it is not set.
func (c *Config) Bool(name string, def bool) (bool, error) { return c.EvalBool(name, def, nil, nil) }

// EvalBool is Bool for a knob that may be an expression over the slot's ad
// (MY) and the job's ad (TARGET).
func (c *Config) EvalBool(name string, def bool, my, target *classads.Ad) (bool, error) {
	text, ok := c.Lookup(name)
	if !ok {
		return def, nil
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	v, err := c.eval(name, my, target)
	if err != nil {
		return def, c.wrong(name, wantBool, err)
	}
	if b, ok := v.Bool(); ok {
		return b, nil
	}
	if n, ok := v.Number(); ok {
		return n != 0, nil
	}
	return def, c.wrong(name, wantBool, evaluated(v))
}

const wantInt = "an integer or an expression that is one"

// Int returns an integer knob, def if it is not set.
func (c *Config) Int(name string, def int64) (int64, error) { return c.EvalInt(name, def, nil, nil) }

// EvalInt is Int for a knob that may be an expression over the slot's ad (MY)
// and the job's ad (TARGET). A real is rounded towards zero.
func (c *Config) EvalInt(name string, def int64, my, target *classads.Ad) (int64, error) {
	text, ok := c.Lookup(name)
	if !ok {
		return def, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err == nil {
		return n, nil
	}
	if errors.Is(err, strconv.ErrRange) {
		return def, c.wrong(name, wantInt, strconv.ErrRange)
	}
	v, err := c.eval(name, my, target)
	if err != nil {
		return def, c.wrong(name, wantInt, err)
	}
	if n, ok := v.Int(); ok {
		return n, nil
	}
	if r, ok := v.Number(); ok && math.Abs(r) < 1<<62 {
		return int64(r), nil
	}
	return def, c.wrong(name, wantInt, evaluated(v))
}

// Real returns a knob that is a number, def if it is not set.
func (c *Config) Real(name string, def float64) (float64, error) {
	const want = "a number or an expression that is one"
	text, ok := c.Lookup(name)
	if !ok {
		return def, nil
	}
	if r, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil && !math.IsNaN(r) && !math.IsInf(r, 0) {
		return r, nil
	}
	v, err := c.eval(name, nil, nil)
	if err != nil {
		return def, c.wrong(name, want, err)
	}
	if r, ok := v.Number(); ok && !math.IsNaN(r) && !math.IsInf(r, 0) {
		return r, nil
	}
	return def, c.wrong(name, want, evaluated(v))
}

// Seconds returns a knob that is a number of whole seconds, def if it is not
// set.
func (c *Config) Seconds(name string, def time.Duration) (time.Duration, error) {
	if _, ok := c.Lookup(name); !ok {
		return def, nil
	}
	n, err := c.Int(name, 0)
	if err != nil {
		return def, c.wrong(name, "a number of seconds or an expression that is one", errors.Unwrap(err))
	}
	if n > math.MaxInt64/int64(time.Second) || n < math.MinInt64/int64(time.Second) {
		return def, c.wrong(name, "a number of seconds below 9e9", nil)
	}
	return time.Duration(n) * time.Second, nil
}

// List returns a knob that is a list, split at commas and white space.
func (c *Config) List(name string) []string {
	v, _ := c.Lookup(name)
	return Split(v)
}

// Split splits a list as HTCondor does by default, at commas and white space
// (condor_utils/stl_string_utils.cpp:StringTokenIterator).
func Split(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r'
	})
}

// Expr returns a knob as an expression; nil if it is not set.
func (c *Config) Expr(name string) (*classads.Expr, error) {
	text, ok := c.Lookup(name)
	if !ok {
		return nil, nil
	}
	e, err := classads.ParseOldExpr(strings.TrimSpace(text))
	if err != nil {
		return nil, c.wrong(name, "a ClassAd expression", err)
	}
	return e, nil
}

// EvalString returns a knob that is an expression for a string over the
// slot's ad (MY) and the job's ad (TARGET), def if it is not set or the
// expression is undefined.
func (c *Config) EvalString(name, def string, my, target *classads.Ad) (string, error) {
	const want = "an expression that is a string"
	if _, ok := c.Lookup(name); !ok {
		return def, nil
	}
	v, err := c.eval(name, my, target)
	if err != nil {
		return def, c.wrong(name, want, err)
	}
	if v.Kind() == classads.Undefined {
		return def, nil
	}
	s, ok := v.Str()
	if !ok {
		return def, c.wrong(name, want, evaluated(v))
	}
	return s, nil
}

func (c *Config) eval(name string, my, target *classads.Ad) (classads.Value, error) {
	text, _ := c.Lookup(name)
	e, err := classads.ParseOldExpr(strings.TrimSpace(text))
	if err != nil {
		return classads.Value{}, err
	}
	return e.Eval(classads.Env{My: my, Target: target, Site: c.site}), nil
}

func evaluated(v classads.Value) error {
	return fmt.Errorf("it evaluates to %s", cut(v.String()))
}
