package classads

import (
	"sync"
	"time"

	"podstarter/classads/internal/pattern"
)

// Env is what an evaluation sees besides the expression. The zero value has no
// ads, the real clock, the shared random source and the default limits.
type Env struct {
	// My is the ad in which MY.x and plain names are looked up.
	My *Ad
	// Target is the ad in which TARGET.x is looked up, and plain names that My
	// does not have.
	Target *Ad
	// Now is the clock of time(), CurrentTime and other functions; nil is
	// time.Now. The time functions use the zone of the times that it returns.
	Now func() time.Time
	// Random returns numbers in [0,1) for random(); nil is math/rand.
	Random func() float64
	// Site is what the surroundings add to the language. If it is nil, that of My counts,
	// then that of Target; see [Ad.Use].
	Site *Site
	// Trace receives a line for each evaluation of debug(); nil discards it.
	Trace func(line string)
	// Limits bounds the evaluation.
	Limits Limits
}

// Site is what the program in which expressions are evaluated adds to the language, or
// changes in it. It must not be changed while it is used.
type Site struct {
	// UserHome answers userHome(). Nil answers as a daemon without
	// CLASSAD_ENABLE_USER_HOME does.
	UserHome func(user string) (dir string, ok bool)
	// UserMap answers userMap(): it returns the groups, separated by commas, that
	// a named map gives to a user. Nil answers as a daemon without maps does. steps is how
	// many steps searches for patterns may still take in this evaluation; what UserMap takes
	// is subtracted. An error ends the evaluation.
	UserMap func(mapName, user string, steps *int) (groups string, ok bool, err error)
	// Strict: a plain name never means an attribute of Target, MY is only known where there is
	// a Target, and CurrentTime never, as in a daemon with STRICT_CLASSAD_EVALUATION.
	Strict bool
}

// Use makes the surroundings count for each evaluation in which the ad is My, or Target of
// another that has none. Copies of the ad have them too. Like a change of the ad, it must not
// happen while others use the ad.
func (a *Ad) Use(s *Site) { a.site = s }

// Limits limits one evaluation. A field that is not positive stands for the
// default. Beyond a limit the result is an error, and its Reason names the limit.
type Limits struct {
	// Depth is how deep operations and references nest. The default, 400, is
	// HTCondor's (src/classad/classad/exprTree.h:MAX_CLASSAD_RECURSION).
	Depth int
	// Steps is the number of nodes that are evaluated; a function call counts as
	// several. HTCondor's limit is ten times the default.
	Steps int
	// Bytes is the size of all strings and lists that functions make.
	Bytes int
}

// Default limits of an evaluation.
const (
	DefaultDepth = 400
	DefaultSteps = 1_000_000
	DefaultBytes = 64 << 20
)

// searchSteps limits the search for patterns in one evaluation. It is PCRE2's match
// limit, which HTCondor has for each search.
const searchSteps = 10_000_000

// scope is an ad in which names are looked up.
type scope struct {
	ad     *Ad
	parent *scope // the ad that encloses this one
	root   *scope // the outermost
	other  *scope // on an outermost scope: the ad it is matched with
	left   *scope // on the scope around a match: where the evaluation began
	env    *Env

	// A scope may stand for another, in, while the evaluated expression was written
	// elsewhere: then nested ads and lists belong to lexical.
	in, lexical *scope
}

// within returns the scope in which to evaluate the elements of a list. Names mean
// what they mean in sc, where the list is used, but nested ads belong to where the
// list was written (HTCondor's nodes know their parent ad).
func within(sc *scope, written *scope) *scope {
	if sc == nil || sc == written {
		return sc
	}
	view := *sc
	view.in, view.lexical = sc.self(), written
	return &view
}

// self returns the scope that sc stands for.
func (sc *scope) self() *scope {
	if sc != nil && sc.in != nil {
		return sc.in
	}
	return sc
}

// home returns the scope that a nested ad or list evaluated in sc belongs to.
func (sc *scope) home() *scope {
	if sc != nil && sc.in != nil {
		return sc.lexical
	}
	return sc
}

// matched returns the ad that a name means in the scope around a match (HTCondor
// src/classad/matchClassad.cpp), or nil. Only an outermost ad has such a scope.
func (sc *scope) matched(name specialName) *scope {
	switch {
	case sc.parent != nil:
		return nil
	case sc.left != nil: // the surroundings themselves
		if name == nameLeft {
			return sc.left
		} else if name == nameRight {
			return sc.left.other
		}
		return nil
	case sc.other == nil:
		return nil
	}
	switch name {
	case nameTarget:
		return sc.other
	case nameOwn:
		return sc
	case nameLeft:
		return sc.root.left
	}
	return sc.root.left.other
}

// inner returns the scope of a nested ad. Its outermost scope is that of sc.
func (sc *scope) inner(ad *Ad) *scope {
	if sc = sc.home(); sc == nil {
		return outer(ad, nil)
	}
	return &scope{ad: ad, parent: sc, root: sc.root, env: sc.env}
}

// outer returns the scope of an ad that nothing encloses.
func outer(ad *Ad, env *Env) *scope {
	sc := &scope{ad: ad, env: env}
	sc.root = sc
	return sc
}

// evaluator is the state of one evaluation.
type evaluator struct {
	env    *Env
	depth  int // levels left
	steps  int // nodes left
	bytes  int // bytes of strings left
	search int // steps left to search for patterns
	failed bool
	reason string // why it failed

	// active are the attributes being evaluated, to find circles.
	active []activeAttr

	// Storage, so that a simple evaluation allocates only the evaluator.
	envCopy            Env
	my, target, around scope
	activeArray        [8]activeAttr
	room               pattern.Room // kept for the next evaluation
}

type activeAttr struct {
	n  node
	ad *Ad
}

var emptyAd = NewAd()

var noSite Site

var evaluators = sync.Pool{New: func() any { return new(evaluator) }}

// start prepares an evaluation and returns the scope of Env.My.
func (ev *evaluator) start(env *Env) *scope {
	ev.envCopy = *env
	ev.env = &ev.envCopy
	for _, ad := range [...]*Ad{env.My, env.Target} {
		if ev.envCopy.Site == nil && ad != nil {
			ev.envCopy.Site = ad.site
		}
	}
	if ev.envCopy.Site == nil {
		ev.envCopy.Site = &noSite
	}
	limit := func(n, def int) int {
		if n <= 0 {
			return def
		}
		return n
	}
	ev.depth = limit(env.Limits.Depth, DefaultDepth)
	ev.steps = limit(env.Limits.Steps, DefaultSteps)
	ev.bytes = limit(env.Limits.Bytes, DefaultBytes)
	ev.search = searchSteps
	ev.failed, ev.reason = false, ""
	ev.active = ev.activeArray[:0]
	if env.My == nil && env.Target == nil {
		return nil
	}
	my := env.My
	if my == nil {
		my = emptyAd
	}
	ev.my = scope{ad: my, env: ev.env, root: &ev.my}
	if env.Target != nil && env.Target != env.My {
		// In a match both ads are inside an ad that has neither's attributes.
		ev.around = scope{ad: emptyAd, env: ev.env, root: &ev.around, left: &ev.my}
		ev.target = scope{ad: env.Target, env: ev.env, root: &ev.around, other: &ev.my}
		ev.my.other, ev.my.root = &ev.target, &ev.around
	}
	return &ev.my
}

// finish turns a failed evaluation into an error and gives the evaluator back
// unless the value refers to it.
func (ev *evaluator) finish(v Value) Value {
	if ev.failed {
		v = ErrorValue(ev.reason)
	}
	if v.kind != List && v.kind != Record {
		*ev = evaluator{room: ev.room}
		evaluators.Put(ev)
	}
	return v
}

// fail ends the whole evaluation. The result is an error, whatever the operators
// around do.
func (ev *evaluator) fail(reason string) Value {
	if !ev.failed {
		ev.failed, ev.reason = true, reason
	}
	return ErrorValue(reason)
}

// step accounts for one node; false means that the evaluation has failed.
func (ev *evaluator) step() bool {
	if ev.steps--; ev.steps < 0 || ev.failed {
		ev.stop()
		return false
	}
	return true
}

// stop is called when the steps are used up or the evaluation has failed.
func (ev *evaluator) stop() Value { return ev.fail("the evaluation takes too many steps") }

// spend accounts for memory that a function is about to use; false means that
// the evaluation has failed.
func (ev *evaluator) spend(bytes int) bool {
	if bytes > ev.bytes {
		ev.bytes = 0
		ev.fail("the evaluation makes too many bytes of strings")
		return false
	}
	ev.bytes -= bytes
	return true
}

// attempt evaluates and turns a failure into a mere error, in the few places
// where HTCondor ignores the failure of an operand.
func (ev *evaluator) attempt(n node, sc *scope) Value {
	v := n.eval(ev, sc)
	if ev.failed {
		v = ErrorValue(ev.reason)
		ev.failed = false
	}
	return v
}

// Eval evaluates the expression.
func (e *Expr) Eval(env Env) Value { return evalNode(e.tree(), &env) }

// Eval evaluates an attribute of the ad. The ad is MY; env.My is not used. An
// absent attribute is undefined.
func (a *Ad) Eval(name string, env Env) Value {
	n := a.find(name, hashName(name))
	if n == nil {
		return Value{}
	}
	env.My = a
	return evalNode(n, &env)
}

func evalNode(n node, env *Env) Value {
	if l, ok := n.(*literal); ok {
		return l.Value
	}
	ev := evaluators.Get().(*evaluator)
	sc := ev.start(env)
	return ev.finish(n.eval(ev, sc))
}

// evalIn evaluates a node that a value holds, in the scope it came from.
func evalIn(n node, sc *scope) Value {
	if l, ok := n.(*literal); ok {
		return l.Value
	}
	env := &Env{}
	if sc != nil && sc.env != nil {
		env = sc.env
	}
	ev := evaluators.Get().(*evaluator)
	ev.start(env)
	return ev.finish(n.eval(ev, sc))
}

func (l *literal) eval(ev *evaluator, _ *scope) Value {
	ev.steps--
	return l.Value
}

func (n *relTimeNode) eval(ev *evaluator, _ *scope) Value {
	ev.steps--
	return RealValue(n.seconds)
}

func (n *listNode) eval(ev *evaluator, sc *scope) Value {
	ev.steps--
	return Value{kind: List, list: n, sc: sc.home()}
}

func (n *adNode) eval(ev *evaluator, sc *scope) Value {
	ev.steps--
	return Value{kind: Record, sc: sc.inner(n.ad)}
}

// callSteps is how many steps a function call counts, in addition to its arguments.
const callSteps = 8

func (c *call) eval(ev *evaluator, sc *scope) Value {
	if ev.steps -= callSteps; ev.steps < 0 || ev.failed {
		return ev.stop()
	}
	if c.fn == nil {
		return ErrorValue("unknown function")
	}
	if len(c.args) < c.fn.min || c.fn.max >= 0 && len(c.args) > c.fn.max {
		return ErrorValue("wrong number of arguments of a function")
	}
	return c.fn.eval(ev, sc, c)
}
